-- The session of the fnn program: read from a file, and at a terminal where
-- util-linux's script gives one.

local shell = require "spec.support.shell"
local run, FNN = shell.run, shell.FNN

teardown(shell.clean)

-- The output of a session without the line of the versions, and its messages.
local function session(input, arguments)
  local out, err, code = run(FNN .. " " .. (arguments or "") .. " -i",
                             { input = input })
  assert.equal(0, code)
  return (out:gsub("^fnn [^\n]*PUC%-Rio\n", "")), err
end

describe("a session", function ()
  it("prints expressions, also of several values and after =", function ()
    assert.equal("> 1 + 1\n2\n> 1, nil, 'a'\n1\tnil\ta\n> =3\n3\n> x = 4\n" ..
                 "> x\n4\n> \n", (session "1 + 1\n1, nil, 'a'\n=3\nx = 4\nx\n"))
  end)

  it("goes on over lines while only the end is missing", function ()
    assert.equal("> for i = 1, 2 do\n>> print(i) end\n1\n2\n> a =\n>> 10\n" ..
                 "> a\n10\n> \n",
                 (session "for i = 1, 2 do\nprint(i) end\na =\n10\na\n"))
  end)

  it("has its prompts in _PROMPT and _PROMPT2", function ()
    assert.equal("ax =\nb1\nax\n1\na\n",
                 (session("x =\n1\nx\n", [[-e "_PROMPT='a' _PROMPT2='b'"]])))
    assert.equal("1nil\n2nil\n3\n", (session("nil\nnil\n", [[-e '
      local n = 0
      _PROMPT = setmetatable({}, {__tostring = function ()
        n = n + 1 return tostring(n) end})
      print = function () end']])))
  end)

  it("survives errors, told without the program's name", function ()
    local out, err = session "error 'bad'\n}\n1\n"
    assert.equal("> error 'bad'\n> }\n> 1\n1\n> \n", out)
    assert.matches("^stdin:1: bad\nstack traceback:\n\t%[C%]: in function " ..
                   "'error'\n\tstdin:1: in main chunk\n\t%[C%]: in %?\n" ..
                   "stdin:1: unexpected symbol near '}'\n$", err)
    err = select(2, session "print = nil\n1\n")
    assert.matches("^error calling 'print' %(attempt to call a nil", err)
  end)

  it("follows the script or the statements before it", function ()
    assert.equal("> x\n5\n> \n", (session("x\n", "-e 'x = 5'")))
  end)

  it("keeps the last result in _, and prints none after ;", function ()
    assert.equal("> 2 * 3;\n> _\n6\n> _ + 1\n7\n> _\n7\n> \n",
                 (session "2 * 3;\n_\n_ + 1\n_\n"))
  end)

  it("shows what is no number without a sign", function ()
    assert.matches("\n  nan +nan\n",
                   (session "fnn.tensor { 0 / 0, -(0 / 0) }\n"))
  end)

  it("shows tables to depth 2", function ()
    local out = session [[
{}
{ 1, "two", { 3, { 4 } }, x = { y = 1 }, ["a b"] = false }
t = {} t.t = t
t
setmetatable({}, { __tostring = function () return "own" end })
]]
    assert.equal([=[
> {}
{}
> { 1, "two", { 3, { 4 } }, x = { y = 1 }, ["a b"] = false }
{ 1, "two", { 3, {...} }, ["a b"] = false, x = { y = 1 } }
> t = {} t.t = t
> t
{ t = {...} }
> setmetatable({}, { __tostring = function () return "own" end })
own
]=] .. "> \n", out)
  end)

  it("shows long tables on lines, and not all of the longest", function ()
    local out = session "t = {} for i = 1, 150 do t[i] = i end\nt\n"
    assert.matches("\n{\n  1,\n  2,\n.*  100,\n  %.%.%. 50 more\n}\n", out)
    out = session "{ ('x'):rep(80), y = { ('x'):rep(80) } }\n"
    local x = ('"%s"'):format(("x"):rep(80))
    assert.matches("\n{\n  " .. x .. ",\n  y = {\n    " .. x .. "\n  }\n}\n",
                   out)
  end)

  it("has the library as the global fnn, unless that name is taken",
     function ()
    assert.matches("\ntable\n", (session "type(fnn)\n"))
    assert.matches("\n1\n", (session("fnn\n", "-e 'fnn = 1'")))
  end)

  it("helps on names", function ()
    assert.matches("TAB", (session "?\n"))
    assert.matches("\nfnn%.zeros_like%(x: Tensor", (session "?zeros_like\n"))
    assert.matches("no help on 'qqqq'", (session "?qqqq\n"))
  end)

  it("opens from a script with globals of its own", function ()
    local script = shell.write [[
      local env = setmetatable({ x = 5 }, { __index = _G })
      require "fnn".repl(env)
      print(env.y, y)]]
    local out = run(FNN .. " " .. script, { input = "x\ny = x + 1\n" })
    assert.equal("> x\n5\n> y = x + 1\n> \n6\tnil\n", out)
  end)

  it("shows no colours where there is no terminal", function ()
    local out, err = session "{ 1 }\nerror 'x'\n"
    assert.is_nil((out .. err):find "\27")
  end)
end)

-- Types keys at a terminal, half a second apart, and gives what it shows.  A
-- session that begins later than they end would wait for its end for ever.
local function type_keys(keys, env)
  local typed = { "sleep 0.5" }
  for _, key in ipairs(keys) do
    typed[#typed + 1] = ("printf '%s'; sleep 0.5"):format(key)
  end
  local state = shell.folder()
  local command = shell.with(
    "{ %s; } | TERM=xterm XDG_STATE_HOME=%s %s " ..
    "timeout 60 script -qec %s /dev/null",
    table.concat(typed, "; "), state, env or "", FNN)
  return (run(command):gsub("\r", "")), state
end

local has_editor = FNN and run(FNN .. " env"):find "libedit" ~= nil and
                   shell.has "script"

describe("at a terminal #terminal", function ()
  if not has_editor then
    pending "needs libedit and script"
    return
  end

  it("says how to ask for help", function ()
    assert.matches("PUC%-Rio\n%?name shows help", (type_keys { "", "", "" }))
  end)

  it("keys complete names, methods and file names", function ()
    local folder = shell.folder()
    shell.write("", folder .. "/only-one")
    local out = type_keys { "string.for\\t\\r", "(\"\"):re\\t\\025",
      "s = \"x\"\\r", "s:re\\t\\t\\025", "io.stdout:see\\t\\025",
      "x = fnn.zeros(1)\\r", "x:reshap\\t\\025",
      "\"" .. folder .. "/on\\t\\r" }
    assert.matches("mat\nfunction: ", out)
    assert.matches("rep +reverse", out)
    assert.matches("io%.stdout:see[^\n]*k", out) -- of the metatable
    assert.matches("x:reshap[^\n]*e", out)
    assert.matches("\n" .. folder:gsub("%p", "%%%0") .. "/only%-one\n", out)
  end)

  it("Ctrl-C drops a line, stops what runs, and the session goes on",
     function ()
    local out = type_keys { "('x'):rep(\\003", "10 + 1\\r",
      "while true do end\\r", "\\003", "20 + 2\\r" }
    assert.matches("\n11\n", out)
    assert.matches("interrupted!", out)
    assert.matches("\n22\n", out)
  end)

  it("the history is kept, a chunk an entry, for its owner alone", function ()
    local out, state = type_keys { "{ 1,\\r2 }\\r", "\\033[A\\r" }
    local _, times = out:gsub("{ \27%[36m1", "")
    assert.equal(2, times)
    assert.matches("{%g*1,\\0122", (shell.read(state .. "/fnn/history")))
    local mode = run("stat -c %a " .. state .. "/fnn/history")
    assert.equal("600\n", mode)
  end)

  it("says once that a local ends with its line", function ()
    local out = type_keys { "local a = 1\\r", "local b = 2\\r", "a, b\\r" }
    assert.equal(1, select(2, out:gsub("leave out 'local' to keep it", "")))
    assert.matches("nil\tnil", (out:gsub("\27%[[%d;]*m", "")))
    assert.is_nil((session "local a = 1\n"):find "leave out")
  end)

  it("NO_COLOR takes the colours away", function ()
    local out = type_keys({ "{ 1 }\\r" }, "NO_COLOR=1")
    assert.matches("\n{ 1 }\n", out)
  end)
end)
