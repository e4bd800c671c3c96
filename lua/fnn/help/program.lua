-- program.lua - help on what the program adds to the library.
return [[
# The program

`fnn script.lua` runs a script as `lua` does, with the library at hand; `fnn`
alone is a prompt. The manual page, fnn(1), tells their options and keys. What
is below is in the program alone: a `lua` that loads the library has it not.

fnn.repl(env?: table)
  Opens a prompt in the midst of a script, until Ctrl-D, and returns nothing.
  env is the table of globals there, the script's own if it is left out: give
  `setmetatable({ model = model }, { __index = _G })` to look at locals.
]]
