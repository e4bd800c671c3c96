-- print.lua - plots in a terminal: as letters, or as a picture where it can
-- show one.
--
-- Pictures go by kitty's graphics protocol (sw.kovidgoyal.net/kitty/
-- graphics-protocol: PNG in base64, in pieces of 4096 letters) or iTerm2's
-- (iterm2.com/documentation-images.html).
local fnn, load, internals = ...
local Screen = load "plot/screen"
local cells = load "plot/print_cells"
local data = load "plot/data"
local options = load "data/options"
local print_xy = load "plot/print_xy"
local raw, getenv = internals.canvas, internals.getenv

local raise, check = options.raise, options.check
local concat, max, min = table.concat, math.max, math.min
local char, ipairs, tostring, type = string.char, ipairs, tostring, type

local default_width, widest, narrow = 80, 120, 38

-- {======================================================
-- What the terminal can do
-- =======================================================

local function is(name, ...)
  local v = getenv(name)
  for _, wanted in ipairs { ... } do
    if v == wanted then return true end
  end
  return false
end

local function set(name) return (getenv(name) or "") ~= "" end

-- "256" or "true" where colors may be shown.
local function colors_of(tty)
  if not tty or set "NO_COLOR" or is("TERM", "dumb") then return nil end
  return is("COLORTERM", "truecolor", "24bit") and "true" or "256"
end

-- The protocol for pictures; a multiplexer in between would not pass it on.
local function pictures_of(tty)
  if not tty or set "TMUX" or set "STY" then return nil end
  if set "KITTY_WINDOW_ID" or is("TERM", "xterm-kitty", "xterm-ghostty") or
     is("TERM_PROGRAM", "ghostty") then
    return "kitty"
  end
  if is("TERM_PROGRAM", "iTerm.app", "WezTerm") then return "iterm" end
end

-- }======================================================

-- {======================================================
-- Pictures
-- =======================================================

local digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" ..
               "0123456789+/"

local function base64(s)
  local pairs_of, out = {}, {}
  for i = 0, 4095 do
    pairs_of[i] = char(digits:byte((i >> 6) + 1), digits:byte((i & 63) + 1))
  end
  for i = 1, #s - 2, 3 do
    local a, b, c = s:byte(i, i + 2)
    local v = a << 16 | b << 8 | c
    out[#out + 1] = pairs_of[v >> 12] .. pairs_of[v & 4095]
  end
  local left = #s % 3
  if left > 0 then
    local a, b = s:byte(#s - left + 1, #s)
    local v = a << 16 | (b or 0) << 8
    local text = pairs_of[v >> 12] .. pairs_of[v & 4095]
    out[#out + 1] = text:sub(1, left + 1) .. ("="):rep(3 - left)
  end
  return concat(out)
end

local function kitty(png, width)
  local text, out = base64(png), {}
  for i = 1, #text, 4096 do
    local first, more = i == 1, i + 4096 <= #text
    out[#out + 1] = "\27_G" ..
      (first and "f=100,a=T," .. (width and "c=" .. width .. "," or "") or
       "") .. "m=" .. (more and 1 or 0) .. ";" .. text:sub(i, i + 4095) ..
      "\27\\"
  end
  return concat(out) .. "\n"
end

local function iterm(png, width)
  return ("\27]1337;File=inline=1;size=%d%s:%s\7\n"):format(
    #png, width and ";width=" .. width or "", base64(png))
end

-- }======================================================

-- {======================================================
-- Letters
-- =======================================================

local printers = {}

-- Parts side by side as far as they fit, else below one another.
function printers.grid(p, width, height, color)
  local columns = p.columns
  while columns > 1 and (width - 2 * (columns - 1)) // columns < narrow do
    columns = columns - 1
  end
  local each = (width - 2 * (columns - 1)) // columns
  local parts, tall, total = {}, {}, p.title ~= "" and 2 or 0
  for i, part in ipairs(p.parts) do
    parts[i] = printers[part.kind](part, each, height, color)
    local row = (i - 1) // columns + 1
    tall[row] = max(tall[row] or 0, parts[i].height)
  end
  local tops = {}
  for row, lines in ipairs(tall) do
    tops[row] = total + 1
    total = total + lines + 1
  end
  local screen = Screen.new(width, total - 1)
  screen:write(1, 1, Screen.cut(p.title, width))
  for i, part in ipairs(parts) do
    screen:copy(part, (i - 1) % columns * (each + 2) + 1,
                tops[(i - 1) // columns + 1])
  end
  return screen
end

for _, kind in ipairs { "lines", "scatter", "histogram" } do
  printers[kind] = print_xy
end
for kind, f in pairs(cells) do printers[kind] = f end

-- }======================================================

local defaults = { width = false, height = false, color = "auto",
                   picture = "auto" }
local types = { width = "number", height = "number", color = "any",
                picture = "any" }

local function choice(name, v, found, ...)
  if v == "auto" then return found end
  if v == false then return nil end
  if v == true then return found or (...) end
  for _, known in ipairs { ... } do
    if v == known then return v end
  end
  raise("Plot:print: option '%s': expected true, false, '%s', got %s", name,
        concat({ ... }, "' or '"), data.described(v))
end

-- Prints a part; draw(): its picture.
return function(part, file, opts, draw)
  if type(file) == "table" and opts == nil and not file.write then
    file, opts = nil, file
  end
  local o = check("Plot:print", opts, defaults, types)
  local tty, columns = raw.terminal(file)
  local given = data.size("Plot:print: option 'width'", o.width, 20, 1000)
  local height = data.size("Plot:print: option 'height'", o.height, 6, 1000)
  local width = given or max(20, min(columns or default_width, widest))
  local picture = choice("picture", o.picture, pictures_of(tty), "kitty",
                         "iterm")
  local color = choice("color", o.color, colors_of(tty), "256", "true")
  local text
  if picture then
    text = (picture == "kitty" and kitty or iterm)(fnn.io.encode_png(draw()),
                                                   given)
  else
    text = printers[part.kind](part, width, height, color):text(color)
  end
  if file == nil then
    raw.write(text)
  else
    local ok, why = file:write(text)
    if not ok and why then raise("Plot:print: %s", tostring(why)) end
  end
end
