-- terminal_spec.lua - plots as text.

local fnn = require "fnn"
local shell = require "spec.support.shell"
local plot = fnn.plot

-- What a plot prints, as text and as lines.
local function printed(p, o)
  local parts = {}
  p:print({ write = function(_, s) parts[#parts + 1] = s end }, o)
  local text, lines = table.concat(parts), {}
  for line in text:gmatch "(.-)\n" do lines[#lines + 1] = line end
  return text, lines
end

local function widest(lines)
  local n = 0
  for _, line in ipairs(lines) do n = math.max(n, utf8.len(line)) end
  return n
end

describe("a printed line", function()
  -- 17 columns and 4 lines, so 34 by 16 dots; the line takes the first 16.
  local small = { width = 20, height = 6 }
  local function diagonal(x, y)
    return plot.lines { { x = x, y = y }, xlim = { 0, 1 }, ylim = { 0, 1 } }
  end

  it("is made of braille dots", function()
    local _, lines = printed(diagonal({ 0, 15 / 33 }, { 0, 1 }), small)
    assert.same({
      " 1┤      ⡠⠊",
      "  │    ⡠⠊",
      "  │  ⡠⠊",
      " 0┤⡠⠊",
      "  └┬───────────────┬",
      "   0               1",
    }, lines)
    _, lines = printed(diagonal({ 0, 15 / 33 }, { 1, 0 }), small)
    assert.same({ " 1┤⠑⢄", "  │  ⠑⢄", "  │    ⠑⢄", " 0┤      ⠑⢄" },
                { table.unpack(lines, 1, 4) })
  end)

  it("has gaps, and dots where points stand alone", function()
    local _, lines = printed(diagonal({ 0, 0.2, 0.5, 0.8, 1 },
                                      { 0, 0, 0 / 0, 1, 1 }), small)
    assert.equal(" 0┤⣀⣀⣀⣀", lines[4])
    assert.equal(" 1┤             ⠉⠉⠉⠉", lines[1])
    _, lines = printed(diagonal({ 0.5 }, { 0 }), small)
    assert.equal(" 0┤        ⢀", lines[4])
  end)

  it("has title, labels and marks around it, in its width", function()
    local p = plot.lines { { y = { 1, 2, 4 }, label = "training" },
                           { y = { 2, 3, 5 }, label = "validation" },
                           title = "Loss", xlabel = "epoch",
                           ylabel = "entropy" }
    local text, lines = printed(p, { width = 60, height = 15 })
    assert.equal(15, #lines)
    assert.is_true(widest(lines) <= 60)
    assert.equal("Loss", lines[1])
    assert.equal("a  training  b  validation", lines[2])
    assert.equal("entropy", lines[3])
    assert.matches("^%s+epoch$", lines[15])
    assert.matches("^%s+1%s+2%s+3$", lines[14])
    -- Each line ends in its letter.
    assert.matches(" b\n", text)
    assert.matches(" a\n", text)
    assert.is_nil(text:find "\27")
  end)

  it("cuts what does not fit", function()
    local long = ("long "):rep(50)
    local series = {}
    for i = 1, 9 do series[i] = { y = { i, 1e9 }, label = long } end
    series.title, series.xlabel, series.ylabel = long, long, long
    for _, width in ipairs { 20, 40, 100 } do
      local _, lines = printed(plot.lines(series),
                               { width = width, height = 12 })
      assert.is_true(widest(lines) <= width)
      assert.is_true(#lines <= 13)
    end
  end)

  it("passes no codes of labels on to the terminal", function()
    local p = plot.lines { { 1, 2 }, title = "a\27[2Jb\r\nc\u{9b}d\u{e9}" }
    local text, lines = printed(p, { width = 40 })
    assert.is_nil(text:find("[\27\r]"))
    assert.equal("a [2Jb  c d\u{e9}", lines[1])
    text = printed(plot.lines { { 1, 2 }, title = "a\xffb" })
    assert.matches("^a%?b\n", text)
  end)
end)

describe("Plot:print", function()
  it("says that there is no room", function()
    local file = io.open("/dev/full", "w")
    if not file then return end
    file:setvbuf "no"
    local ok, why = pcall(function() plot.lines { { 1, 2 } }:print(file) end)
    assert.is_false(ok)
    assert.matches("Plot:print: No space left on device$", why)
  end)
end)

describe("printed colors", function()
  local p = plot.lines { { y = { 1, 1 }, label = "one" },
                         { y = { 2, 2 }, label = "two" } }

  it("are the palette's", function()
    local text = printed(p, { color = "true", width = 40 })
    assert.matches("\27%[38;2;0;114;178;49m━━\27%[39;49m one", text)
    assert.matches("\27%[38;2;213;94;0;49m━━\27%[39;49m two", text)
    -- Without its codes each line fits, and each ends without a color.
    local plain = text:gsub("\27%[[%d;]*m", "")
    for line in plain:gmatch "(.-)\n" do
      assert.is_true(utf8.len(line) <= 40)
    end
    for line in text:gmatch "(.-)\n" do
      local code = line:match "^.*\27%[([%d;]*)m"  -- the last
      assert.is_true(code == nil or code == "0" or code == "39;49")
    end
  end)

  it("differ for eleven series", function()
    local series, seen, n = {}, {}, 0
    for i = 1, 11 do series[i] = { y = { i, i }, label = "x" .. i } end
    for c in printed(plot.lines(series), { color = "true" })
             :gmatch "\27%[([%d;]*;49)m━━" do
      n, seen[c] = n + (seen[c] and 0 or 1), true
    end
    assert.equal(10, n)  -- and black, for which the terminal has its own
  end)

  it("are of 256 where a terminal has no more", function()
    local text = printed(p, { color = "256" })
    assert.matches("\27%[38;5;31;49m", text)  -- 16 + 36 * 0 + 6 * 2 + 3
    assert.is_nil(text:find("38;2", 1, true))
  end)

  it("come to a terminal alone, and not with NO_COLOR", function()
    if not shell.has "script" then return pending "there is no script(1)" end
    local path = shell.write [[
      local p = require "fnn".plot.lines { { y = { 1, 2 }, label = "x" } }
      p:print()
    ]]
    local clear = "env -u NO_COLOR -u TMUX -u STY -u KITTY_WINDOW_ID " ..
                  "-u TERM_PROGRAM -u COLORTERM TERM=xterm "
    local function run(environment, terminal)
      local command = clear .. environment .. " " .. shell.FNN .. " " .. path
      if terminal then
        command = ("script -qec '%s' /dev/null </dev/null"):format(command)
      end
      return (shell.run(command))
    end
    assert.is_nil(run("", false):find "\27%[")
    assert.is_truthy(run("", true):find("\27[38;5;", 1, true))
    assert.is_truthy(run("COLORTERM=truecolor", true)
                     :find("\27[38;2;", 1, true))
    assert.is_nil(run("NO_COLOR=1", true):find "\27%[%d")
    assert.is_nil(run("TERM=dumb", true):find "\27%[%d")
    shell.clean()
  end)
end)

describe("a printed histogram", function()
  it("has bars in eighths of a letter", function()
    local p = plot.histogram { { 0, 1, 1, 2, 2, 2, 2 }, bins = 3,
                               xlim = { 0, 2 }, ylim = { 0, 4 } }
    local _, lines = printed(p, { width = 27, height = 7 })
    local function bars(line)
      return (line:gsub("^.*┤", ""):gsub("^.*│", ""))
    end
    -- 1, 2 and 4 of 4, on 4 lines under "count", in 24 columns.
    assert.equal("count", lines[1])
    local full, half = ("█"):rep(8), ("█"):rep(8)
    assert.equal((" "):rep(16) .. full, bars(lines[2]))
    assert.equal((" "):rep(8) .. half .. full, bars(lines[4]))
    assert.equal(("█"):rep(24), bars(lines[5]))
  end)
end)

describe("printed points", function()
  it("are letters of their series without colors", function()
    local p = plot.scatter { { x = { 0, 1 }, y = { 0, 1 } },
                             { x = { 0.5 }, y = { 0.5 } },
                             xlim = { 0, 1 }, ylim = { 0, 1 } }
    local _, lines = printed(p, { width = 20, height = 7 })
    assert.same({ " 1┤                o", "  │", "  │        x", "  │",
                  " 0┤o" }, { table.unpack(lines, 1, 5) })
  end)
end)

describe("a printed matrix", function()
  it("of confusion is a table", function()
    local p = plot.confusion { { { 12, 0 }, { 3, 105 } },
                               classes = { "cat", "dog" }, title = "Pets" }
    assert.equal("Pets\n" ..
                 "     predicted\n" ..
                 "true  cat  dog\n" ..
                 " cat   12    .\n" ..
                 " dog    3  105\n", (printed(p)))
  end)

  it("is shaded, with names beside it", function()
    local p = plot.heatmap { { { 0, 1 }, { 0.5, 0 } },
                             xlabels = { "k1", "k2" },
                             ylabels = { "q1", "q2" } }
    local _, lines = printed(p, { width = 40 })
    assert.equal("q1     @@@@", lines[1])
    assert.equal("       @@@@", lines[2])
    assert.equal("q2 ++++", lines[3])
    assert.equal("    k1  k2", lines[5])
    assert.equal("   0   ..:--=++*##%@@ 1", lines[6])
  end)

  it("is made smaller until it fits", function()
    local _, lines = printed(plot.heatmap { fnn.rand { 300, 500 } },
                             { width = 60, height = 20 })
    assert.is_true(#lines <= 20 and widest(lines) <= 60)
    _, lines = printed(plot.confusion { fnn.ones { 30, 30 } },
                       { width = 60, height = 20 })
    assert.is_true(#lines <= 20 and widest(lines) <= 60)
  end)

  it("has its colors in half lines", function()
    local p = plot.heatmap { { { 0 }, { 1 } } }
    local text = printed(p, { color = "true" })
    -- 4 columns a cell; both halves of a letter are of one cell.
    assert.matches("\27%[38;2;68;1;84;48;2;68;1;84m▀▀▀▀", text)
    assert.matches("\27%[38;2;253;231;37;48;2;253;231;37m▀▀▀▀", text)
  end)
end)

describe("printed images", function()
  local x = fnn.tensor({ { { 0, 255 }, { 255, 0 } },
                         { { 255, 255 }, { 0, 0 } } }, { dtype = "u8" })

  it("are shades side by side, with their texts", function()
    local p = plot.images { x, labels = { "a", "b" }, wrong = { [2] = "c" },
                            columns = 2 }
    local _, lines = printed(p, { width = 60 })
    local dark, light = (" "):rep(10), ("@"):rep(10)
    assert.equal(dark .. light .. "  " .. light .. light, lines[1])
    assert.equal(light, lines[10])
    assert.matches("^%s+a%s+b %(wrong%)$", lines[11])
    assert.matches("^%s+is c$", lines[12])
  end)

  it("are at most eight rows, or what a height holds", function()
    local p = plot.images { fnn.zeros { 100, 20, 20 }, columns = 1 }
    local _, lines = printed(p)
    assert.equal("and 92 more", lines[#lines])
    _, lines = printed(p, { height = 22 })
    assert.equal("and 98 more", lines[#lines])
  end)
end)

describe("a printed grid", function()
  local a = plot.lines { { 1, 2 }, title = "left" }
  local b = plot.lines { { 2, 1 }, title = "right" }

  it("stands side by side where there is room, else below", function()
    local _, lines = printed(plot.grid { a, b }, { width = 80, height = 10 })
    assert.equal(10, #lines)
    assert.matches("^left%s+right$", lines[1])
    _, lines = printed(plot.grid { a, b, title = "all" },
                       { width = 60, height = 10 })
    assert.same({ "all", "", "left" }, { table.unpack(lines, 1, 3) })
    assert.equal("right", lines[14])
  end)
end)

describe("pictures in a terminal", function()
  local p = plot.lines { { 1, 2 }, width = 100, height = 80 }

  -- The bytes of base64, the slow way.
  local function decoded(text)
    local alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" ..
                     "0123456789+/"
    local bits, n, out = 0, 0, {}
    for c in text:gmatch "[^=]" do
      bits, n = bits << 6 | alphabet:find(c, 1, true) - 1, n + 6
      if n >= 8 then
        n = n - 8
        out[#out + 1] = string.char(bits >> n & 255)
      end
    end
    return table.concat(out)
  end

  local function shown(png)
    local path = shell.write("")
    local f = assert(io.open(path, "wb"))
    f:write(png)
    f:close()
    local x = fnn.io.read_png(path)
    shell.clean()
    return x:eq(p:image()):all():item()
  end

  it("go by kitty's protocol", function()
    local text = printed(p, { picture = "kitty" })
    local pieces = {}
    for keys, data in text:gmatch "\27_G(.-);(.-)\27\\" do
      assert.is_true(#data <= 4096)
      pieces[#pieces + 1] = data
      assert.equal(#pieces == 1 and "f=100,a=T,m=" or "m=",
                   keys:sub(1, -2))
    end
    assert.is_truthy(text:find "m=0;[^;]*\27\\\n$")
    assert.is_true(shown(decoded(table.concat(pieces))))
  end)

  it("go by iTerm2's protocol", function()
    local text = printed(p, { picture = "iterm", width = 50 })
    local size, data = text:match
      "^\27%]1337;File=inline=1;size=(%d+);width=50:(.-)\7\n$"
    local png = decoded(data)
    assert.equal(tonumber(size), #png)
    assert.is_true(shown(png))
  end)
end)
