-- colors.lua - the colors of plots: of series, and of numbers.
--
-- Series: the palette of M. Okabe and K. Ito, Color Universal Design (2008),
-- as B. Wong printed it in Nature Methods 8, 441 (2011).  Its yellow comes
-- last, being hard to see on white.  Then three of P. Tol's muted scheme
-- (Colour Schemes, SRON 2021): eleven and the six shapes of marks repeat after
-- 66 series.
--
-- Numbers: viridis of S. van der Walt and N. Smith (CC0, 256 colors in
-- matplotlib), every eighth color and what is between by straight lines, at
-- most 2 of 255 off; RdBu (turned round: blue is low) and Blues of C. Brewer,
-- ColorBrewer 2.0.  All are told apart by readers who see no red or no green.
local fnn, load, internals = ...
local options = load "data/options"

local raise = options.raise
local floor, max, min = math.floor, math.max, math.min
local pairs, sort, tostring, type = pairs, table.sort, tostring, type
local math_type, tonumber = math.type, tonumber

local colors = {
  ink = 0x222222, axis = 0x555555, grid = 0xe4e4e4, paper = 0xffffff,
  grey = 0xb0b0b0, wrong = 0xd0021b, missing = 0xd9d9d9,
}

local named = {
  blue = 0x0072b2, vermilion = 0xd55e00, green = 0x009e73, purple = 0xcc79a7,
  orange = 0xe69f00, sky = 0x56b4e9, black = 0x000000, yellow = 0xf0e442,
  grey = 0x808080, red = 0xd0021b, white = 0xffffff, wine = 0x882255,
  sand = 0xddcc77, indigo = 0x332288,
}

local palette = { named.blue, named.vermilion, named.green, named.purple,
                  named.orange, named.sky, named.black, named.yellow,
                  named.wine, named.sand, named.indigo }
colors.count = #palette

-- The color of the i-th series, from 1.
function colors.series(i) return palette[(i - 1) % #palette + 1] end

local function keys(t)
  local names = {}
  for name in pairs(t) do names[#names + 1] = name end
  sort(names)
  return names
end

-- A color given as 0xRRGGBB, "#rrggbb" or a name.
function colors.parse(what, v)
  if math_type(v) == "integer" and v >= 0 and v <= 0xffffff then return v end
  if type(v) ~= "string" then
    raise("%s: a color is 0xRRGGBB, '#rrggbb' or a name, got %s", what,
          tostring(v))
  end
  local hex = v:match "^#(%x%x%x%x%x%x)$"
  if hex then return tonumber(hex, 16) end
  if named[v] then return named[v] end
  local near = internals.nearest(v, keys(named))
  raise("%s: unknown color '%s'%s", what, v,
        near and (" (did you mean '%s'?)"):format(near) or "")
end

-- a and b in shares of 1 - t and t.
function colors.mix(a, b, t)
  local c = 0
  for shift = 16, 0, -8 do
    local u, v = a >> shift & 255, b >> shift & 255
    c = c << 8 | floor(u + (v - u) * t + 0.5)
  end
  return c
end

local maps = {
  viridis = {
    0x440154, 0x470d60, 0x48186a, 0x482374, 0x472d7b, 0x453681, 0x424086,
    0x3f4989, 0x3b528b, 0x375a8d, 0x33638d, 0x2f6a8e, 0x2c728e, 0x297a8e,
    0x26818e, 0x23898e, 0x21908c, 0x1f988b, 0x1f9f88, 0x21a685, 0x28ae80,
    0x31b57b, 0x3ebc74, 0x4cc26c, 0x5dc963, 0x6ece58, 0x82d34c, 0x96d83f,
    0xabdc32, 0xc0df24, 0xd5e21a, 0xeae51a, 0xfde725,
  },
  diverging = {
    0x053061, 0x2166ac, 0x4393c3, 0x92c5de, 0xd1e5f0, 0xf7f7f7, 0xfddbc7,
    0xf4a582, 0xd6604d, 0xb2182b, 0x67001f,
  },
  blues = {
    0xf7fbff, 0xdeebf7, 0xc6dbef, 0x9ecae1, 0x6baed6, 0x4292c6, 0x2171b5,
    0x08519c, 0x08306b,
  },
  grey = { 0x000000, 0xffffff },
}

function colors.check_map(what, name)
  if type(name) == "string" and maps[name] then return name end
  local names = keys(maps)
  local near = type(name) == "string" and internals.nearest(name, names)
  raise("%s: unknown colors '%s' (%s)", what, tostring(name),
        near and "did you mean '" .. near .. "'?" or
        "there are " .. table.concat(names, ", "))
end

-- The color of t, from 0 to 1, in a map.
function colors.at(name, t)
  local map = maps[name]
  local p = max(0, min(1, t)) * (#map - 1)
  local i = min(floor(p), #map - 2)
  return colors.mix(map[i + 1], map[i + 2], p - i)
end

-- A table of 256 colors of a map, u8 (256, 3), mixed with white.
local tables = {}
local function table_of(name, white)
  local key = name .. white
  if not tables[key] then
    local rows = {}
    for i = 0, 255 do
      local c = colors.mix(colors.at(name, i / 255), 0xffffff, white)
      rows[i + 1] = { c >> 16, c >> 8 & 255, c & 255 }
    end
    tables[key] = fnn.tensor(rows, { dtype = "u8", device = "cpu" })
  end
  return tables[key]
end

-- The colors, u8 (h, w, 3), of shares t (h, w) from 0 to 1; grey where they
-- are no numbers.
function colors.image(name, t, white)
  local h, w = t:size(1), t:size(2)
  local known = t:isfinite()
  local ids = (fnn.where(known, t, fnn.zeros_like(t)):clamp(0, 1) * 255)
              :round():to "i64"
  local rgb = table_of(name, white or 0):index_select(1, ids:reshape(-1))
              :reshape(h, w, 3)
  if known:all():item() then return rgb end
  local grey = fnn.full({ 1, 1, 1 }, colors.missing & 255,
                        { dtype = "u8", device = "cpu" })
  return fnn.where(known:unsqueeze(3), rgb, grey)
end

-- The same of ids (h, w), each as its series, mixed with white.
function colors.classes(ids, white)
  local rows, n = {}, ids:max():item()
  for i = 0, min(max(n, 0), 255) do
    local c = colors.mix(colors.series(i + 1), 0xffffff, white)
    rows[i + 1] = { c >> 16, c >> 8 & 255, c & 255 }
  end
  local t = fnn.tensor(rows, { dtype = "u8", device = "cpu" })
  return t:index_select(1, ids:to "i64":clamp(0, 255):reshape(-1))
          :reshape(ids:size(1), ids:size(2), 3)
end

-- Whether white is easier to read on c than black.
function colors.is_dark(c)
  return 0.299 * (c >> 16) + 0.587 * (c >> 8 & 255) + 0.114 * (c & 255) < 140
end

return colors
