-- cli.lua - help on the command lines of scripts.
return [[
# Command lines of scripts

A script lists its options, and `fnn.cli` reads them:

    local o = fnn.cli {
      "Trains a model that writes.",
      { "epochs", 20, "times through the data", min = 1, short = "e" },
      { "lr", 1e-3, "rate of the optimizer" },
      { "kind", { "gpt", "lstm" }, "which model" },
      { "quick", false, "a few seconds, for tests" },
      { "data", required = true, value = "FOLDER" },
    }
    print(o.epochs, o.kind, o.quick)

fnn.cli(spec: table, words?: string[]) -> table
  Reads the command line of the script: the global arg, or a list of words. The
  table has the value of each option by its name, its default where none is
  given. `--name value`, `--name=value`, `name=value` and, for options with
  short, `-n value` are the same; a dash in a name is as good as `_`. A word
  `--` ends the options.

  The spec: what the script does, if it is said, then `{ name, default, text }`
  for each option. The default's type is that of the value: an integer, a
  number, a string, a boolean (`--name`, `--no-name`) or a list of what may be
  chosen, the first if nothing is said. Without a default it is a string, or
  what type says, and nil unless given. Other keys of an option:
  required: boolean     raises if it is not given; it has no default
  short: string         a letter: -e
  min: number           the least that is taken
  max: number           the most
  type: string          "integer", "number" or "string"
  value: string         what stands for the value in the help: "FILE"
  The key words of the spec says which words without dashes there may be, "IN
  OUT", "FILE...", "[FILE...]"; they are at 1 and on. Without it such a word
  is wrong.

  Every script has `--device`, `--threads` and `--seed`, which take effect at
  once (see fnn.set_default_device, fnn.threads, fnn.manual_seed); device,
  threads and seed in the table tell what is in force. A spec that lists them
  gives them defaults. `--help` prints the options and ends the script with 0,
  by os.exit of the host. `--completion bash`, `zsh` or `fish` prints what
  makes that shell complete the options: `eval "$(./train.lua --completion
  bash)"`.

  A wrong word raises an object whose tostring is one line: interpreters print
  it without a traceback and end with 1, a host may catch it. With a list of
  words that is not arg nothing is printed or ended: a wrong word raises a
  string, and for `--help` and `--completion` the results are nil and the text.
]]
