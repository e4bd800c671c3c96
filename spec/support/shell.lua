-- shell.lua - runs programs for specs: run(command, options) gives output,
-- messages and exit code.

local shell = {}

-- The interpreter that runs the specs, by a path that holds in any folder.
local function interpreter()
  local first = 0
  while arg and arg[first - 1] do first = first - 1 end
  local path = arg and arg[first] or "build/fnn"
  if not path:find "fnn[^/]*$" then path = "build/fnn" end
  if path:sub(1, 1) == "/" then return path end
  local pwd = io.popen "pwd"
  path = pwd:read() .. "/" .. path
  pwd:close()
  return path
end

shell.FNN = interpreter()

-- Names made here; the system's folder for such files is emptied by others.
local made = {}

local function name()
  made[#made + 1] = os.tmpname()
  return made[#made]
end

-- A file with this text.
function shell.write(text, path)
  path = path or name()
  local f = assert(io.open(path, "w"))
  assert(f:write(text))
  assert(f:close())
  return path
end

-- An empty folder.
function shell.folder()
  local path = name()
  os.remove(path)
  assert(os.execute("mkdir " .. path))
  return path
end

function shell.read(path)
  local f = assert(io.open(path, "rb"))
  local text = f:read "a"
  f:close()
  return text
end

-- A command of several words for run.
function shell.with(command, ...)
  return "sh -c " .. ("'" .. command:format(...):gsub("'", "'\\''") .. "'")
end

-- options.input: text for the standard input; options.env: VAR=value ...
function shell.run(command, options)
  options = options or {}
  local out, err, input = name(), name(), "/dev/null"
  if options.input then input = shell.write(options.input) end
  local _, _, code = os.execute(("env %s %s >%s 2>%s <%s"):format(
    options.env or "", command, out, err, input))
  return shell.read(out), shell.read(err), code
end

function shell.has(program)
  return (os.execute("command -v " .. program .. " >/dev/null 2>&1"))
end

-- Removes the files that were made.
function shell.clean()
  for _, path in ipairs(made) do os.execute("rm -rf " .. path) end
  made = {}
end

return shell
