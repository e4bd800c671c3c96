-- Lua 5.4 and no globals of our own: fnn sets none.
std = "lua54"
max_line_length = 80
self = false  -- a method need not use its receiver
ignore = { "58." }  -- not (x <= y) also catches NaN
files["spec"] = { std = "+busted", ignore = { "512" } }
files["spec/fixtures"] = { max_line_length = false }  -- numbers
files["library"] = { ignore = { ".*" } }  -- annotations, not code
exclude_files = { "build" }
