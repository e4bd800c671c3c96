-- help.lua - the manual as a table from names to texts: help["softmax"].  A
-- call also tells what is near: help("sofmax") is nil and a suggestion.

local manual = require "fnn.manual"

return setmetatable({}, {
  __index = function(_, name)
    if type(name) == "string" then return (manual.text(name)) end
  end,
  __call = function(_, name) return manual.text(name) end,
})
