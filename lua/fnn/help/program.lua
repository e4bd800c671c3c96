-- program.lua - help on what the program adds to the library.
return [[
# Command lines of scripts

fnn.arguments(list?: string[], defaults: table) -> table
  Reads the options of a script, `--name value` or `--name=value`, from a list
  of words such as arg: a table as defaults, with what the words say. An option
  whose default is false has no value and becomes true; a number as default
  wants a number. Each script also has `--device NAME`, which becomes the
  default device; the table's device is its name in full. An unknown option
  raises and names the nearest.

# The program

`fnn script.lua` runs a script as `lua` does, with the library at hand; `fnn`
alone is a prompt. The manual page, fnn(1), tells their options and keys. What
is below is in the program alone: a `lua` that loads the library has it not.

fnn.repl(env?: table)
  Opens a prompt in the midst of a script, until Ctrl-D, and returns nothing.
  env is the table of globals there, the script's own if it is left out: give
  `setmetatable({ model = model }, { __index = _G })` to look at locals.
]]
