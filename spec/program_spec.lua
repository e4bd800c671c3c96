-- The fnn program as a Lua interpreter.  What Lua's manual (section 7) leaves
-- open was taken from lua 5.4.4, and where a lua5.4 is installed each case also
-- runs there: output, messages but for the program's name, and exit code are
-- the same.

local shell = require "spec.support.shell"
local run, with, write, FNN = shell.run, shell.with, shell.write, shell.FNN

local LUA = shell.has "lua5.4" and "lua5.4"

-- The message of an error without the program's name before it.
local function plain(text, program)
  return (text:gsub("%f[^\n\0]" .. program:gsub("%p", "%%%0") .. ": ", "> "))
end

-- Runs fnn and, where there is one, lua5.4; both must do as expected: out, err
-- (a pattern, "> " for the program's name) and code, 0 if not given.
local function like_lua(expected, arguments, options)
  for _, program in ipairs { FNN, LUA } do
    local out, err, code = run(program .. " " .. arguments, options)
    assert.equal(expected.out or "", out)
    assert.equal(expected.code or 0, code)
    if expected.err then assert.matches(expected.err, plain(err, program))
    else assert.equal("", err) end
  end
end

teardown(shell.clean)

describe("the options of lua", function ()
  it("execute a statement with -e, joined or not", function ()
    like_lua({ out = "1\n2\n" }, [[-e 'print(1)' "-eprint(2)"]])
  end)

  it("require with -l, into a global of the module's or another name",
     function ()
    like_lua({ out = "ALO 0.0\n" },
             [[-l str=string -lm=math -e 'io.write(str.upper"alo", " ")' \
               -e 'print(m.sin(0))']])
    like_lua({ out = "true\n" }, [[-l string -e 'print(string.rep ~= nil)']])
    like_lua({ code = 1, err = "^> module 'no%.such' not found:" },
             "-l no.such")
  end)

  it("run in their order, before the script", function ()
    local script = write "print(a, b, ...)"
    like_lua({ out = "first\n1\t2\tx\n" },
             "-e 'a = 1 print \"first\"' -e 'b = a + 1' " .. script .. " x")
  end)

  it("stop at an error", function ()
    like_lua({ code = 1, err = "^> %(command line%):1: bad\nstack traceback:" },
             [[-e 'error "bad"' -e 'print(1)']])
    like_lua({ code = 1, err = "^> %(command line%):1: syntax error near" },
             "-e a")
  end)

  it("turn warnings on with -W, in their place", function ()
    like_lua({ err = "^Lua warning: two\n$" },
             [[-e 'warn "one"' -W -e 'warn "two"']])
    like_lua({ err = "^Lua warning: ab\n$" },
             [[-e 'warn "@on"' -e 'warn("a", "b")']])
  end)

  it("ignore the environment with -E", function ()
    like_lua({ out = "false\n" },
             [[-E -e 'print(package.path:find("xxx", 1, true) ~= nil)']],
             { env = "LUA_INIT='error(1)' LUA_PATH=xxx FNN_INIT='error(1)'" })
  end)

  it("end at --, and at - for the standard input", function ()
    like_lua({ out = "-v\t1\n" }, "- -v", { input = "print(..., #arg)" })
    like_lua({ out = "-e \n" }, '"-e " -- ' .. write "print(arg[-2])" .. " a")
    like_lua({ code = 1, err = "^> cannot open %-: No such file" }, "-- -")
  end)

  it("take a script from the standard input by themselves", function ()
    like_lua({ out = "10\n" }, "", { input = "print(10)" })
  end)
end)

describe("bad options", function ()
  for option, message in pairs {
    ["-h"] = "unrecognized option '%-h'", ["-vv"] = "option '%-vv'",
    ["-Ex"] = "option '%-Ex'", ["---"] = "option '%-%-%-'",
    ["-e"] = "'%-e' needs argument", ["-l"] = "'%-l' needs argument",
    ["-e -v"] = "'%-e' needs argument", ["-iv"] = "option '%-iv'",
  } do
    it("are told with the usage: " .. option, function ()
      like_lua({ code = 1, err = message .. "\nusage: .-script" }, option)
    end)
  end
end)

describe("the script", function ()
  it("finds its arguments in ... and arg", function ()
    local script = write [[
      print(#arg, arg[0] == NAME, arg[-1], arg[-2], arg[4], ...)]]
    local name = ("-e 'NAME=\"%s\"' -- "):format(script)
    like_lua({ out = ("3\ttrue\t--\tNAME=\"%s\"\tnil\ta\tb c\t\n")
                     :format(script) }, name .. script .. " a 'b c' ''")
  end)

  it("may change arg", function ()
    like_lua({ out = "100\n" }, "-e 'arg[1] = 100' -", { input = "print(...)" })
    like_lua({ code = 1, err = "'arg' is not a table" }, "-e 'arg = 1' -",
             { input = "" })
  end)

  it("may begin with a line for the shell", function ()
    like_lua({ out = "2\n" }, write [[
#!/usr/bin/env fnn
print(debug.getinfo(1).currentline)]])
    local script = write("#!" .. FNN .. "\nprint(...)\n")
    os.execute("chmod +x " .. script)
    assert.equal("a\n", (run(script .. " a")))
  end)

  it("ends with a message and a traceback on stderr", function ()
    local script = write "local function f () error 'msg' end\nf()"
    like_lua({ code = 1, err = "^> " .. script:gsub("%p", "%%%0") ..
               ":1: msg\nstack traceback:\n\t%[C%]: in function 'error'\n" ..
               ".*:2: in main chunk\n\t%[C%]: in %?\n$" }, script)
  end)

  it("ends with what an error object says of itself", function ()
    like_lua({ code = 1, err = "^> described\n$" },
             [[-e 'error(setmetatable({}, {__tostring = function ()
               return "described" end}))']])
    like_lua({ code = 1, err = "^> %(error object is a table value%)\nstack" },
             "-e 'error {}'")
    like_lua({ code = 1, err = "^> %(error object is a nil value%)\nstack" },
             "-e 'error(nil)'")
  end)

  it("must exist and be Lua", function ()
    like_lua({ code = 1, err = "^> cannot open no%-such%.lua: No such file" },
             "no-such.lua")
    like_lua({ code = 1, err = ":1: unexpected symbol near <eof>\n$" },
             write "a = ")
  end)

  it("chooses the exit code", function ()
    for code, status in pairs { ["nil"] = 0, ["true"] = 0, ["false"] = 1,
                                ["0"] = 0, ["7"] = 7 } do
      like_lua({ code = status }, ("-e 'os.exit(%s)'"):format(code))
      like_lua({ code = status, out = "closed\n" }, ([[-e '
        local x <close> = setmetatable({}, {__close = function ()
          print "closed" end})
        os.exit(%s, true)']]):format(code))
    end
  end)

  it("is closed in order at the end", function ()
    like_lua({ out = "2\n1\n" }, [[-e 'for i = 1, 2 do
      setmetatable({}, {__gc = function () print(i) end}) end']])
    like_lua({ err = "Lua warning: error in __gc", out = "" }, [[-W -e '
      x = setmetatable({}, {__gc = function () error "e" end})']])
  end)

  it("has the collector as lua has it", function ()
    like_lua({ out = "generational\n" },
             "-e 'print(collectgarbage \"incremental\")'")
  end)

  it("finds dropped tensors while few bytes are new, beside many objects",
     function ()
    local out = run(FNN .. " -", { input = [[
      local fnn, crowd = require "fnn", {}
      for i = 1, 100000 do crowd[i] = { i } end
      collectgarbage()
      local x = fnn.ones(1000)
      fnn.reset_peak_memory()
      local before = fnn.memory().live
      for _ = 1, 10000 do local y = x + 1 end
      print(fnn.memory().peak - before < 4 << 20, #crowd)]] })
    assert.equal("true\t100000\n", out)
  end)
end)

describe("the environment", function ()
  it("has code to run in LUA_INIT_5_4, or else LUA_INIT", function ()
    local env = { env = "LUA_INIT_5_4='X = 10' LUA_INIT='X = 3'" }
    like_lua({ out = "10\n" }, "-e 'print(X)'", env)
    env.env = "LUA_INIT='X = arg[1]'"
    like_lua({ out = "a\n" }, write "print(X)" .. " a", env)
    env.env = "LUA_INIT=@" .. write "X = 5"
    like_lua({ out = "5\n" }, "-e 'print(X)'", env)
    env.env = [[LUA_INIT='error "msg"']]
    like_lua({ code = 1, err = "^> LUA_INIT:1: msg\n" }, "-e 'print(1)'", env)
  end)

  it("has fnn's own in FNN_INIT, after Lua's", function ()
    local out = run(FNN .. " -e 'print(X)'",
                    { env = "LUA_INIT='X = 1' FNN_INIT='X = X + 1'" })
    assert.equal("2\n", out)
  end)
end)

describe("an interrupt", function ()
  it("raises an error in Lua code, which may catch it", function ()
    local script = write [[
      print(select(2, pcall(function () while true do end end)))
      print "after"]]
    local out = run(with([[%s %s & p=$!; sleep 0.5; kill -INT $p; wait $p]],
                         FNN, script))
    assert.matches("^interrupted!\nafter\n$", out)
  end)

  it("ends the process when it comes again", function ()
    local script = write [[
      print(string.find(string.rep("a", 100000), ".*b"))]]
    local out = run(with([[%s %s & p=$!; sleep 0.5; kill -INT $p; sleep 0.2;
                           kill -INT $p; wait $p; echo $?]], FNN, script))
    assert.equal("130\n", out)
  end)
end)

describe("the program", function ()
  it("tells its versions", function ()
    local out, err, code = run(FNN .. " -v -e 'print(1)'")
    assert.matches("^fnn %d+%.%d+%.%d+, Lua 5%.4.-PUC%-Rio\n1\n$", out)
    assert.equal("0 ", code .. " " .. err)
    assert.matches("^fnn %d+%.%d+%.%d+, Lua 5%.4", (run(FNN .. " --version")))
  end)

  it("explains itself with --help", function ()
    local out, err, code = run(FNN .. " --help")
    assert.matches("^usage: .-%-%-threads N.-%-%-memory%-limit", out)
    assert.matches("Tools.-: completion env", out)
    assert.equal("0 ", code .. " " .. err)
  end)

  it("has the library at hand, but in no global", function ()
    assert.equal("nil\ttable\n",
                 (run(FNN .. " -E -e 'print(fnn, type(require \"fnn\"))'")))
  end)

  it("refuses values that its options cannot have", function ()
    for _, option in ipairs { "--threads 0", "--threads x", "--threads 2x",
                              "--memory-limit 0", "--memory-limit 2Q",
                              "--seed one", "--seed 18446744073709551616",
                              "--memory-limit=99999999999G" } do
      local _, err, code = run(FNN .. " " .. option .. " -e ''")
      assert.equal(1, code)
      assert.matches(": bad value of option '" .. option:match "[^ ]+", err,
                     1, true)
      assert.matches("' (expected ", err, 1, true)
    end
    local _, err, code = run(FNN .. " --threads")
    assert.equal(1, code)
    assert.matches("'%-%-threads' needs argument\nusage:", err)
    _, err, code = run(FNN .. " --device nowhere -e ''")
    assert.equal(1, code)
    assert.matches("nowhere", err)
  end)

  it("seeds the random numbers with any 64 bits", function ()
    local code = [[ -e 'local x = require "fnn".rand(2) print(x[1], x[2])']]
    local one = run(FNN .. " --seed 7" .. code)
    assert.matches("%d", one)
    assert.equal(one, (run(FNN .. " --seed=7" .. code)))
    assert.not_equal(one, (run(FNN .. " --seed 8" .. code)))
    assert.equal((run(FNN .. " --seed -1" .. code)),
                 (run(FNN .. " --seed 18446744073709551615" .. code)))
  end)
end)

describe("a tool", function ()
  it("runs by its name, unless there is a file of that name", function ()
    assert.matches("^fnn +%d.*\ncompiler +%g.*\nkernels +%g.*available: ",
                   (run(FNN .. " env")))
    local folder = shell.folder()
    write("print 'the file'", folder .. "/env")
    assert.equal("the file\n", (run(with("cd %s && %s env", folder, FNN))))
    assert.equal("the file\n", (run(with("%s %s/env", FNN, folder))))
    local _, err, code = run(FNN .. " -- env")
    assert.equal(1, code)
    assert.matches("cannot open env", err)
  end)

  it("tells shells how to complete the program", function ()
    local usage = run(FNN .. " --help")
    for _, name in ipairs { "bash", "zsh", "fish" } do
      local text, err, code = run(FNN .. " completion " .. name)
      assert.equal("0 ", code .. " " .. err)
      for option in usage:gmatch "\n  %-%-?(%a[%a-]*)" do
        assert.matches(option, text, 1, true)
      end
      assert.matches(usage:match "Tools.-: (.-)\n", text, 1, true)
      if shell.has(name) then
        local _, wrong, status = run(name .. " -n " .. write(text))
        assert.equal("0 ", status .. " " .. wrong)
      end
    end
    local _, err, code = run(FNN .. " completion ksh")
    assert.equal("2 fnn completion: expected bash, zsh or fish, got 'ksh'\n",
                 code .. " " .. err)
  end)

  it("lets bash complete scripts by what they say", function ()
    if not shell.has "bash" then return end
    local text = run(FNN .. " completion bash")
    local function complete (line)
      local out = run("bash " .. write(([[
        %s
        _fnn_script_train_lua () { COMPREPLY=("script:$COMP_CWORD"); }
        COMP_WORDS=(%s) COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _fnn
        echo "${COMPREPLY[@]}"]]):format(text, line)))
      return out
    end
    assert.equal("--threads\n", complete "fnn --th")
    assert.equal("cpu cuda\n", complete "fnn --device ''")
    assert.equal("cuda\n", complete "fnn --device = cu")
    assert.equal("script:3\n", complete "fnn a/train.lua --lr ''")
    assert.equal("script:5\n", complete "fnn --threads 2 train.lua --lr ''")
    assert.equal("env\n", complete "fnn en")
    assert.equal("zsh\n", complete "fnn completion z")
    assert.equal("README.md\n", complete "fnn other.lua READ")
  end)

  it("refuses what it does not know, with 2", function ()
    local out, err, code = run(FNN .. " env x")
    assert.equal("2 ", code .. " " .. out)
    assert.matches("^fnn env: unexpected argument 'x'\n$", err)
  end)
end)
