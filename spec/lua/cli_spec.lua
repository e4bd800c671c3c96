-- cli_spec.lua - the command lines of scripts: values and their types, words,
-- messages, help, completion, and what the program does with them.

local fnn = require "fnn"
local shell = require "spec.support.shell"

local function words(text)
  local list = {}
  for word in text:gmatch "%S+" do list[#list + 1] = word end
  return list
end

local SPEC = {
  "What it does.",
  { "epochs", 20, "times through", min = 1, max = 100, short = "e" },
  { "lr", 1e-3, "the rate" },
  { "quick", false, "for tests", short = "q" },
  { "shuffle", true, "another order", short = "s" },
  { "kind", { "gpt", "lstm" }, "which model" },
  { "size", { 8, 16 }, "how large" },
  { "batch_size", 32, "of a step" },
  { "text", "some", "what it reads", value = "FILE" },
  { "resume", nil, "goes on" },
  { "every", nil, "steps", type = "integer" },
  words = "[FILE...]",
}

local function read(text) return fnn.cli(SPEC, words(text)) end

local function fails(message, text, spec)
  local _, got = fnn.try_cli(spec or SPEC, words(text))
  assert.equal(message, (got:gsub("^.-cli: ", "")))
end

describe("fnn.cli", function()
  teardown(shell.clean)

  it("gives the defaults", function()
    local o = read ""
    assert.equal(20, o.epochs)
    assert.equal(1e-3, o.lr)
    assert.is_false(o.quick)
    assert.is_true(o.shuffle)
    assert.equal("gpt", o.kind)
    assert.equal(8, o.size)
    assert.equal("some", o.text)
    assert.is_nil(o.resume)
    assert.is_nil(o.every)
    assert.is_nil(o[1])
    assert.is_nil(o.help)
  end)

  it("reads a value in four ways", function()
    for _, text in ipairs {
      "--epochs 7", "--epochs=7", "epochs=7", "-e 7", "-e7", "-e=7",
      "--epochs 3 -e 7",
    } do
      assert.equal(7, read(text).epochs, text)
    end
    assert.equal(9, read("--batch-size 9").batch_size)
    assert.equal(9, read("--batch_size=9").batch_size)
    assert.equal(9, read("batch-size=9").batch_size)
    assert.equal("a=b", read("--text a=b").text)
    assert.equal("", read("--text=").text)
  end)

  it("gives values the type of the default", function()
    assert.equal("integer", math.type(read("epochs=1e1").epochs))
    assert.equal(10, read("epochs=1e1").epochs)
    assert.equal("float", math.type(read("lr=2").lr))
    assert.equal(-2.5, read("--lr -2.5").lr)
    assert.equal("7", read("text=7").text)
    assert.equal(16, read("size=16").size)
    assert.equal(-3, read("--every -3").every)
    assert.equal(math.maxinteger,
                 read("every=9223372036854775807").every)
  end)

  it("reads flags", function()
    assert.is_true(read("--quick").quick)
    assert.is_true(read("quick=yes").quick)
    assert.is_false(read("--quick --no-quick").quick)
    assert.is_false(read("--no-shuffle").shuffle)
    assert.is_false(read("--shuffle=off").shuffle)
    local o = read("-qse5")
    assert.is_true(o.quick)
    assert.equal(5, o.epochs)
  end)

  it("gathers words, after -- whatever they are", function()
    local o = read("a.txt --quick - -5 -- --lr=2 b=3")
    assert.same({ "a.txt", "-", "-5", "--lr=2", "b=3" },
                { o[1], o[2], o[3], o[4], o[5] })
    assert.equal(1e-3, o.lr)
  end)

  it("says what is wrong with a value", function()
    fails("option '--epochs': expected an integer from 1 to 100, got '2.5'",
          "--epochs 2.5")
    fails("option '--epochs': expected an integer from 1 to 100, got '101'",
          "epochs=101")
    fails("option '--every': expected an integer, got '9223372036854775808'",
          "every=9223372036854775808")
    fails("option '--lr': expected a number, got 'fast'", "--lr fast")
    fails("option '--lr': expected a number, got '1e999'", "--lr 1e999")
    fails("option '--kind': expected gpt or lstm, got 'lstn' (did you mean " ..
          "'lstm'?)", "--kind lstn")
    fails("option '--size': expected 8 or 16, got '9'", "--size 9")
    fails("option '--quick': expected yes or no, got 'maybe'", "quick=maybe")
    fails("option '--lr' needs a value", "--lr")
    fails("option '-e' needs a value", "-e")
    fails("option '--text' needs a value, got the option '--quick' (a value " ..
          "that begins so is written --text=--quick)", "--text --quick")
    fails("option '--no-quick' has no value", "--no-quick=1")
  end)

  it("names the nearest of what it does not know", function()
    fails("unknown option '--epoch' (did you mean '--epochs'?)", "--epoch 3")
    fails("unknown option '--no-shufle' (did you mean '--no-shuffle'?)",
          "--no-shufle")
    fails("unknown option '--devise' (did you mean '--device'?)", "--devise x")
    fails("unknown option 'epoch=' (did you mean 'epochs='?)", "epoch=3")
    fails("unknown option '--no-lr'", "--no-lr")
    fails("unknown option '--no-help' (did you mean '--help'?)", "--no-help")
    fails("expected no words but options, got '-5'", "-5", { { "lr", 1 } })
    fails("unknown option '-x'", "-x")
    local spec = { { "quick", false } }
    fails("expected no words but options, got 'quick' (did you mean " ..
          "'--quick'?)", "quick", spec)
    spec.words = "IN OUT"
    fails("unexpected word 'c'", "a b c", spec)
    fails("expected IN OUT", "a", spec)
    assert.equal("b", fnn.cli(spec, { "a", "b" })[2])
    assert.equal(2.0, fnn.cli({ { "x", { 1.0, 2.0 } } }, { "x=2" }).x)
    assert.equal("float", math.type(
      fnn.cli({ { "x", 1, type = "number" } }, {}).x))
    fails("expected FILE...", "", { words = "FILE..." })
  end)

  it("wants what is required", function()
    local spec = {
      { "data", required = true, value = "FOLDER" },
      { "count", nil, "how many", required = true, type = "integer" },
    }
    fails("options '--data', '--count' must be given", "", spec)
    fails("option '--count' must be given", "--data x", spec)
    assert.equal(3, fnn.cli(spec, words "--data x --count 3").count)
  end)

  it("applies the standard options", function()
    local threads = fnn.threads()
    local o = fnn.cli({ { "seed", 5, "mine" } }, {})
    assert.equal(5, o.seed)
    local first = fnn.rand(1):item()
    fnn.manual_seed(5)
    assert.equal(first, fnn.rand(1):item())
    o = fnn.cli({}, words "--seed 6 --threads 1 --device cpu")
    assert.same({ 6, 1, "cpu" }, { o.seed, o.threads, o.device })
    assert.equal(6, fnn.default_generator():seed())
    assert.equal(1, fnn.threads())
    assert.equal(6, fnn.cli({}, {}).seed)  -- what is in force
    fnn.threads(threads)
    local _, message = fnn.try_cli({}, words "--device cud")
    assert.matches("option '%-%-device': unknown device 'cud'", message)
    fails("option '--threads': threads: count out of range (expected 0 to " ..
          "256, got 999)", "--threads 999", {})
    fails("option '--threads': expected an integer of 1 or more, got '0'",
          "--threads 0", {})
  end)

  it("checks the spec", function()
    local function wrong(message, spec)
      local _, got = fnn.try_cli(spec, {})
      assert.equal("cli: " .. message, (got:gsub("^.-: ", "", 1)))
    end
    wrong("expected { \"What the script does.\", { name, default, text }, " ..
          "... }, got nil", nil)
    wrong("entry 1: expected { name, default, text }, got a number", { 3 })
    wrong("entry 2: expected a name of letters, digits and _, got '--x'",
          { "About.", { "--x", 1 } })
    wrong("option 'a': unknown key 'shrt' (did you mean 'short'?)",
          { { "a", 1, "", shrt = "a" } })
    wrong("option 'a' is there twice", { { "a", 1 }, { "a", 2 } })
    wrong("options 'a' and 'b' are both -x",
          { { "a", 1, short = "x" }, { "b", 2, short = "x" } })
    wrong("option 'a' is required, so it has no default",
          { { "a", 1, required = true } })
    wrong("option 'a': expected a number, a string, a boolean, a list of " ..
          "choices or nil as its default, got an empty table", { { "a", {} } })
    wrong("option 'a': min is for numbers", { { "a", "x", min = 1 } })
    wrong("option 'a': its default is no integer",
          { { "a", "x", type = "integer" } })
    wrong("option 'a': its default is no integer",
          { { "a", 0.5, type = "integer" } })
    wrong("option 'a': its default is no string",
          { { "a", 1, type = "string" } })
    wrong("option 'a': expected texts or numbers to choose from, got a table",
          { { "a", { {} } } })
    wrong("option 'a': expected { name, default, text }, got something at [4]",
          { { "a", 1, "b", "c" } })
    wrong("every script has an option 'help'", { { "help", false } })
    wrong("option 'seed' is an integer in every script", { { "seed", "x" } })
    wrong("unknown key 'word' (expected words)", { word = "FILE" })
    local _, got = fnn.try_cli({}, 3)
    assert.matches("cli: expected a list of words, got a number$", got)
  end)

  it("gives a host the text of --help", function()
    local o, text = fnn.cli({
      "Does a thing.",
      { "epochs", 20, "times through", min = 1, short = "e" },
      { "rate", 0.1 }, { "kind", { "a", "b" }, "which" },
      { "prompt", "\n", "what it goes on from" },
      { "data", required = true, value = "FOLDER" },
      { "shuffle", true, ("long "):rep(20) },
    }, words "--epochs 3 --help --epochs")
    assert.is_nil(o)
    assert.equal([[
usage: script [options]

Does a thing.

Options:
  -e, --epochs N  times through (of 1 or more; default: 20)
  --rate X        (default: 0.1)
  --kind a|b      which (default: a)
  --prompt TEXT   what it goes on from (default: "\n")
  --data FOLDER   (required)
  --[no-]shuffle  long long long long long long long long long long long long
                  long long long long long long long long (default: yes)

Options of every script:
  --device NAME   where to compute: cpu, cuda, cuda:1
  --threads N     how many threads compute (of 1 or more)
  --seed N        seed of the random numbers
  --completion bash|zsh|fish
                  print what completes this command line in a shell
  -h, --help      print this text]], text)
  end)
end)

-- A script of its own that prints an option's value.
local function script()
  return shell.write [[
local o = require "fnn".cli {
  "A script.",
  { "epochs", 20, "times through" },
  { "kind", { "gpt", "lstm" }, "it's [one]: which" },
  { "text", "", "what it reads", value = "FILE" },
}
print(o.epochs, o.kind)
]]
end

describe("a script's command line", function()
  teardown(shell.clean)

  it("is read from arg", function()
    local out, err, code = shell.run(shell.FNN .. " " .. script() ..
                                     " --epochs 3 kind=lstm")
    assert.same({ "3\tlstm\n", "", 0 }, { out, err, code })
  end)

  it("ends with a line on stderr and 1", function()
    local path = script()
    local out, err, code = shell.run(shell.FNN .. " " .. path .. " --epoch 3")
    assert.same({ "", 1 }, { out, code })
    assert.equal(shell.FNN .. ": " .. path:match "[^/]+$" .. ": unknown " ..
                 "option '--epoch' (did you mean '--epochs'?) (--help tells " ..
                 "the usage)\n", err)
  end)

  it("may be caught", function()
    local path = shell.write [[
      local ok, e = pcall(require "fnn".cli, {})
      print(ok, type(e), (tostring(e):gsub("^.-: ", "")))]]
    assert.equal("false\ttable\tunknown option '--x' (--help tells the " ..
                 "usage)\n", (shell.run(shell.FNN .. " " .. path .. " --x")))
  end)

  it("prints its help on stdout and ends with 0", function()
    local path = script()
    local out, err, code = shell.run(shell.FNN .. " " .. path .. " --help")
    assert.same({ "", 0 }, { err, code })
    assert.matches("^usage: fnn " .. path:gsub("%p", "%%%0") ..
                   " %[options%]\n\nA script.\n", out)
  end)

  it("works in a lua that loads the library", function()
    if not shell.has "lua5.4" then return end
    local path, env = script(), { env = "LUA_CPATH='build/?.so'" }
    local out, _, code = shell.run("lua5.4 " .. path .. " --help", env)
    assert.equal(0, code)
    assert.matches("^usage: lua5.4 ", out)
    local _, err, status = shell.run("lua5.4 " .. path .. " --no", env)
    assert.equal(1, status)
    assert.matches("^lua5.4: [^\n]*unknown option '%-%-no'[^\n]*\n$", err)
  end)

  it("is completed by bash", function()
    if not shell.has "bash" then return end
    local path = script()
    local text = shell.run(shell.FNN .. " " .. path .. " --completion bash")
    local name = path:match "[^/]+$"
    local function complete(...)
      local line = { name, ... }
      local quoted = {}
      for i, word in ipairs(line) do quoted[i] = "'" .. word .. "'" end
      local out, err = shell.run("bash " .. shell.write(([[
        %s
        COMP_WORDS=(%s) COMP_CWORD=%d
        _fnn_script_%s
        echo "${COMPREPLY[@]}"
        complete -p %s >&2]]):format(text, table.concat(quoted, " "),
          #line - 1, name:gsub("%W", "_"), name)))
      assert.matches("%-F _fnn_script_", err)
      return out
    end
    assert.equal("--epochs\n", complete "--ep")
    assert.equal("gpt lstm\n", complete("--kind", ""))
    assert.equal("lstm\n", complete("--kind", "=", "l"))
    assert.equal("gpt lstm\n", complete("--kind", "="))
    assert.equal("README.md\n", complete("--text", "READM"))
    assert.equal("\n", complete("--epochs", ""))
    assert.matches("%-%-help", complete "")
  end)

  for _, name in ipairs { "zsh", "fish" } do
    it("is completed by " .. name, function()
      local path = script()
      local text = shell.run(shell.FNN .. " " .. path .. " --completion " ..
                             name)
      assert.matches(name == "zsh" and "'%-%-kind=%[it'\\''s \\%[one\\%]\\: " ..
                     "which%]:kind:%(gpt lstm%)'" or
                     "%-l kind %-x %-a 'gpt lstm' %-d 'it\\'s %[one%]: which'",
                     text)
      if shell.has(name) then
        local _, err, code = shell.run(name .. " -n " .. shell.write(text))
        assert.same({ "", 0 }, { err, code })
      end
    end)
  end
end)
