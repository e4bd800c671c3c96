-- jsonl.lua - a log as lines of JSON: the sink of fnn.log.jsonl.
--
--   {"step":100,"time":1767225600.25,"loss":0.5}
--
-- A line is one write, so a killed run leaves at most the beginning of one,
-- which the next run takes away.

local fnn, load, internals = ...
local json = load "json"
local module = load "nn/module"

local ipairs, pcall, tonumber, type = ipairs, pcall, tonumber, type
local math_type, huge = math.type, math.huge
local byte, find, format, gmatch, gsub, match, sub =
  string.byte, string.find, string.format, string.gmatch, string.gsub,
  string.match, string.sub
local concat = table.concat

-- The shortest that is read back as the same.  JSON has no words for what is
-- no finite number: strings say it.
local function number (v)
  if math_type(v) == "integer" then return format("%d", v) end
  if v ~= v then return '"NaN"' end
  if v == huge then return '"Infinity"' end
  if v == -huge then return '"-Infinity"' end
  for digits = 15, 17 do
    local text = gsub(format("%." .. digits .. "g", v), ",", ".")
    if digits == 17 or tonumber(text) == v then
      return find(text, "[.e]") and text or text .. ".0"
    end
  end
end

local function line (step, fields)
  return format('{"step":%d,"time":%.3f%s%s}\n', step, internals.now(),
                #fields > 0 and "," or "", concat(fields, ","))
end

local function field (name, text) return json.encode(name) .. ":" .. text end

-- Takes a torn last line away; one that only lacks its end gets it.  What is
-- no part of a log's line is of another file, and stays.
local function mend (append, tail, path)
  if tail == "" then return end
  local ok, t = pcall(json.decode, tail)
  local start = '{"step":'
  if ok and type(t) == "table" then
    append "\n"
  elseif sub(tail, 1, #start) == sub(start, 1, #tail) then
    append(#tail)
  else
    module.raise("jsonl: %s: is no log: its last line is of another kind",
                 path)
  end
end

-- Opens the file without the lines of steps that are to come again.
local function open (path, resume)
  local append, tail = internals.appender(path, false)
  mend(append, tail, path)
  if not resume then return append end
  local kept, dropped = {}, false
  for text in gmatch(fnn.io.read_text(path), "[^\n]*\n") do
    local step = tonumber(match(text, '^{"step":(%-?%d+)'))
    if step and step >= resume then
      dropped = true
    else
      kept[#kept + 1] = text
    end
  end
  if not dropped then return append end
  append()
  fnn.io.write_text(path, concat(kept))
  return (internals.appender(path, false))
end

-- A name as a part of a file's: letters, digits and -_. stay, and no two
-- names become one.
local function file_part (name)
  return (gsub(name, "[^%w_%-.]", function (c)
    return format("%%%02X", byte(c))
  end))
end

local function histogram_text (h)
  local fields = { field("count", number(h.count)) }
  if h.nonfinite > 0 then
    fields[2] = field("nonfinite", number(h.nonfinite))
  end
  if h.count > 0 then
    local counts = {}
    for i, n in ipairs(h.counts) do counts[i] = number(n) end
    for _, name in ipairs { "min", "max", "sum", "squares" } do
      fields[#fields + 1] = field(name, number(h[name]))
    end
    fields[#fields + 1] = field("counts", "[" .. concat(counts, ",") .. "]")
  end
  return "{" .. concat(fields, ",") .. "}"
end

return function (path, resume)
  local folder, file = match(path, "^(.*/)([^/]*)$")
  if folder then fnn.io.make_folder(folder) end
  local append = open(path, resume)
  local images = gsub(file or path, "%.jsonl$", "") .. "-images"
  local sink = { name = path }

  function sink.scalars (list, step)
    local fields = {}
    for i, pair in ipairs(list) do
      fields[i] = field(pair[1], number(pair[2]))
    end
    append(line(step, fields))
  end

  -- The pictures are files beside, which the line names.
  function sink.image (name, list, step)
    fnn.io.make_folder((folder or "") .. images)
    local names = {}
    for i, image in ipairs(list) do
      local place = format("%s/%s-%d%s.png", images, file_part(name), step,
                           #list > 1 and "-" .. i or "")
      fnn.io.write_text((folder or "") .. place, image.png)
      names[i] = json.encode(place)
    end
    append(line(step, { field(name, '{"images":[' .. concat(names, ",") ..
                              "]}") }))
  end

  function sink.text (name, text, step)
    append(line(step, { field(name, json.encode(text)) }))
  end

  function sink.histogram (name, h, step)
    append(line(step, { field(name, histogram_text(h)) }))
  end

  function sink.close () append() end

  return sink
end
