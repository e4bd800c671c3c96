-- What state() gives goes through JSON into a file's metadata and back.

local fnn = require "fnn"
local nn = fnn.nn

local Keeper = nn.module "Keeper"
function Keeper:state () return self.kept end
function Keeper:load_state (t) self.got = t end

local path

before_each(function () path = os.tmpname() end)
after_each(function () os.remove(path) end)

local function round_trip (value)
  local a, b = Keeper(), Keeper()
  a.kept = value
  a:save(path)
  b:load(path)
  return b.got
end

local function file_with (text)
  fnn.io.save_safetensors(path, {}, { ["fnn.state"] = text })
end

describe("values of state()", function ()
  it("come back as they were", function ()
    local value = {
      whole = 3, big = math.maxinteger, least = math.mininteger,
      float = 3.0, small = 5e-324, large = 1.7976931348623157e308,
      third = 1 / 3, minus = -0.5, yes = true, no = false, empty = {},
      text = "a\"b\\c\n\t\r\0\1\127/", letters = "Grüße, 日本 😀",
      list = { 1, 2.5, "x", { "y", { z = 1 } } },
    }
    local got = round_trip(value)
    assert.same(value, got)
    assert.equal("integer", math.type(got.whole))
    assert.equal("float", math.type(got.float))
  end)

  it("that no file can hold are refused", function ()
    local function fails (text, value)
      assert.error_matches(function () round_trip { v = value } end, text, 1,
                           true)
    end
    fails("json: no number for inf", math.huge)
    fails("json: a value that is a function", print)
    fails("json: a table is a list or has string keys: got both",
          { 1, x = 2 })
    fails("json: a key that is a number", { [3] = 1 })
    fails("json: a string is not UTF-8 at its byte 3: 'ab\\xffc'", "ab\xffc")
    fails("json: a string is not UTF-8", { ["\xed\xa0\x80"] = 1 })
    local deep = {}
    for _ = 1, 200 do deep = { deep } end
    fails("json: tables nested too deep", deep)
  end)

  it("are read in any spelling of JSON", function ()
    file_with [[ { "" : { "a" : [ 1 , -2.5e1 , true , null ] ,
      "b" : "\u00e9\ud83d\ude00\/" , "c" : { } } } ]]
    local m = Keeper()
    m:load(path)
    assert.same({ a = { 1, -25.0, true }, b = "é😀/", c = {} }, m.got)
  end)

  it("that are damaged are one error", function ()
    for _, text in ipairs { "{", "[1,]", '{"a" 1}', '{"a":1,}', "01", "nul",
                            '"\\x"', '"\1"', "{} x", "", '{"a":+1}', "-",
                            ("["):rep(500), '"\\u12"', "1e", "tru" } do
      file_with(text)
      assert.error_matches(function () Keeper():load(path) end,
                           "metadata fnn.state", 1, true, text)
    end
  end)
end)
