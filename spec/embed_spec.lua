-- scripts/embed: the C file that holds the Lua half.

local shell = require "spec.support.shell"

teardown(shell.clean)

-- The byte arrays and the table's rows of what embed writes.
local function embed(...)
  local out, err, code = shell.run("scripts/embed " ..
                                   table.concat({ ... }, " "))
  assert.equal("0 ", code .. " " .. err)
  local arrays, rows = {}, {}
  for bytes in out:gmatch "static const unsigned char text%d+%[%] = {(.-)};" do
    local text = {}
    for byte in bytes:gmatch "%d+" do text[#text + 1] = string.char(byte) end
    arrays[#arrays + 1] = table.concat(text)
  end
  for name, i in out:gmatch '{ "([^"]+)", text(%d+), sizeof text%d+ %- 1 },' do
    rows[#rows + 1] = { name = name, text = arrays[i + 1] }
  end
  assert.matches("const Embedded embedded%[%] = {.*{ 0, 0, 0 }\n};\n$", out)
  return rows
end

describe("scripts/embed", function ()
  it("names files from fnn/ on and keeps every byte, with a zero after",
     function ()
    local folder = shell.folder() .. "/lua/fnn"
    os.execute("mkdir -p " .. folder .. "/tools")
    local bytes = {}
    for i = 0, 255 do bytes[i + 1] = string.char(i) end
    local all = table.concat(bytes)
    shell.write(all:rep(3), folder .. "/nn.lua")
    shell.write("", folder .. "/tools/empty.lua")
    assert.same({ { name = "fnn/nn.lua", text = all:rep(3) .. "\0" },
                  { name = "fnn/tools/empty.lua", text = "\0" } },
                embed(folder .. "/nn.lua", folder .. "/tools/empty.lua"))
  end)

  it("writes an empty table for no files", function ()
    assert.same({}, embed())
  end)

  it("refuses what is no file of the library", function ()
    local _, err, code = shell.run "scripts/embed README.md"
    assert.equal(1, code)
    assert.matches("README.md is no lua/fnn/%*%.lua", err)
    _, _, code = shell.run "scripts/embed lua/fnn/no-such.lua"
    assert.equal(1, code)
  end)
end)
