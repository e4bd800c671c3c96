local fixture = require "spec.support.fixture"
local fnn = require "fnn"

describe("einsum", function ()
  fixture.define(require "spec.fixtures.einsum", it)

  it("takes a table of tensors", function ()
    local x = fnn.tensor({ 1, 2, 3, 4 }, 2, 2)
    assert.same({ { 7, 10 }, { 15, 22 } },
                fnn.einsum("ij,jk->ik", { x, x }):totable())
  end)

  it("names what is wrong", function ()
    local x = fnn.zeros(2, 3)
    local function fails (pattern, ...)
      local args = { ... }
      assert.error_matches(function ()
        fnn.einsum(table.unpack(args))
      end, pattern)
    end
    fails('einsum: 3 indices in "ijk" for shape %(2, 3%)', "ijk", x)
    fails('einsum: 1 indices in "i" for shape %(2, 3%)', "i", x)
    fails("has size 3 in one place and 2 in shape %(2, 3%)", "ij,jk", x, x)
    fails("fewer operands than given", "ij", x, x)
    fails("more operands than given", "ij,jk", x)
    fails("no operand has an index of the result", "ij->ik", x)
    fails("an index twice in the result", "ij->ii", x)
    fails("a character that is no index", "i1", x)
    fails("a '%-' without '>'", "ij-ji", x)
    fails("more than one result", "ij->i,j", x)
    fails("no operand has the '...'", "ij->...i", x)
    fails("two sizes of a repeated index", "ii", fnn.zeros(1, 3))
    fails("has size 2 in one place and 3", "ii", x)
    fails("at least one tensor", "ij")
    fails("too many", "ABCDEFGHI", x)
  end)
end)
