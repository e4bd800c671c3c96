-- pad_sequence_spec.lua - sequences of unequal lengths as one batch.

local fnn = require "fnn"
local tensor, pad = fnn.tensor, fnn.pad_sequence

local function raises(text, ...)
  local ok, message = pcall(fnn.pad_sequence, ...)
  assert.is_false(ok)
  assert.is_truthy(message:find("pad_sequence: " .. text, 1, true), message)
end

describe("fnn.pad_sequence", function()
  local a, b, c = tensor { 1, 2, 3 }, tensor { 4 }, fnn.zeros(0)

  it("fills up to the longest, and tells the lengths", function()
    local y, lengths = pad { a, b, c }
    assert.are.same({ { 1, 2, 3 }, { 4, 0, 0 }, { 0, 0, 0 } }, y:totable())
    assert.are.same({ 3, 1, 0 }, lengths:totable())
    assert.are.equal("i64", lengths:dtype())
    assert.are.same({ { 1, 2, 3 }, { 4, -1, -1 }, { -1, -1, -1 } },
                    pad({ a, b, c }, { value = -1 }):totable())
    assert.are.same({ { 1, 2, 3 }, { 7, 7, 4 }, { 7, 7, 7 } },
                    pad({ a, b, c }, { value = 7, side = "left" }):totable())
  end)

  it("keeps dtypes, further dimensions and views", function()
    local ids = pad({ tensor({ 5 }, { dtype = "i64" }),
                      tensor({ 6, 7 }, { dtype = "i64" }) }, { value = 9 })
    assert.are.equal("i64", ids:dtype())
    assert.are.same({ { 5, 9 }, { 6, 7 } }, ids:totable())
    local x = fnn.arange(6):reshape(2, 3)
    local y = pad { x:t(), x:t():narrow(1, 2, 1) }
    assert.are.same({ { { 0, 3 }, { 1, 4 }, { 2, 5 } },
                      { { 1, 4 }, { 0, 0 }, { 0, 0 } } }, y:totable())
    assert.are.same({ 2, 0, 3 },
                    pad { fnn.zeros(0, 3), fnn.zeros(0, 3) }:shape())
    local one, n = pad { b }
    assert.are.same({ { 4 } }, one:totable())
    assert.are.same({ 1 }, n:totable())
  end)

  it("is what the recurrent layers take", function()
    local gru = fnn.nn.GRU(2, 3)
    local long, short = fnn.randn(5, 2), fnn.randn(2, 2)
    local x, lengths = pad({ long, short }, { value = 100 })
    local _, h = gru(x, { lengths = lengths })
    local _, alone = gru(short:unsqueeze(1))
    assert.is_true((h:select(2, 2) - alone:select(2, 1)):abs():max():item()
                   < 1e-6)
  end)

  it("says what does not go together", function()
    raises("expected a list of tensors, got a tensor", a)
    raises("expected a list of tensors, got an empty table", {})
    raises("expected a list of tensors, got a table at place 2 (fnn.tensor " ..
           "makes one)", { a, { 1 } })
    raises("the tensor at place 1 has no dimension", { fnn.tensor(3) })
    raises("tensor 2, (n, 2) of f32 on cpu, does not go with the first, (n) " ..
           "of f32 on cpu", { a, fnn.zeros(2, 2) })
    raises("tensor 2, (n) of i64 on cpu, does not go with the first",
           { a, fnn.zeros(2, { dtype = "i64" }) })
    raises("option 'value': expected a number, got a string", { a },
           { value = "0" })
    raises("option 'side': expected 'right' or 'left', got 'up'", { a },
           { side = "up" })
    raises("unknown option 'batch_first' (expected side, value)", { a },
           { batch_first = true })
    raises("expected at most 2 arguments, got 3", { a }, {}, 0)
  end)
end)
