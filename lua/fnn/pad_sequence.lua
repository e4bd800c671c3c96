-- pad_sequence.lua - sequences of unequal lengths as one batch.

local fnn, load = ...
local module = load "nn/module"

local concat, unpack = table.concat, table.unpack
local getmetatable, ipairs = getmetatable, ipairs
local tostring, type = tostring, type
local max, min, math_type = math.max, math.min, math.type
local raise, described = module.raise, module.described

-- Of each x its shape but for the length, its dtype and device, as text.
local function kind_of (x)
  local shape = x:shape()
  shape[1] = "n"
  return "(" .. concat(shape, ", ") .. ") of " .. x:dtype() .. " on " ..
         x:device()
end

local function check_list (list)
  if type(list) ~= "table" or getmetatable(list) or #list == 0 then
    raise("pad_sequence: expected a list of tensors, got %s",
          type(list) == "table" and not getmetatable(list) and
          "an empty table" or described(list))
  end
  for i, x in ipairs(list) do
    if not fnn.is_tensor(x) then
      raise("pad_sequence: expected a list of tensors, got %s at place %d%s",
            described(x), i,
            type(x) == "table" and " (fnn.tensor makes one)" or "")
    end
    if x:ndim() == 0 then
      raise("pad_sequence: the tensor at place %d has no dimension: " ..
            "expected a sequence, (n, ...)", i)
    end
    if kind_of(x) ~= kind_of(list[1]) then
      raise("pad_sequence: tensor %d, %s, does not go with the first, %s",
            i, kind_of(x), kind_of(list[1]))
    end
  end
end

local function check_options (o)
  if not math_type(o.value) then
    raise("pad_sequence: option 'value': expected a number, got %s",
          described(o.value))
  end
  if o.side ~= "right" and o.side ~= "left" then
    raise("pad_sequence: option 'side': expected 'right' or 'left', got %s",
          type(o.side) == "string" and "'" .. o.side .. "'" or
          tostring(o.side))
  end
end

-- fnn.pad_sequence(list [, { value = 0, side = "right" }]): (n, longest, ...)
-- and the lengths.
local function pad_sequence (list, options, ...)
  module.no_more("pad_sequence", 2, ...)
  local o = module.options("pad_sequence", options,
                           { value = 0, side = "right" })
  check_list(list)
  check_options(o)
  local lengths, longest, shortest = {}, 0, 1 / 0
  for i, x in ipairs(list) do
    lengths[i] = x:size(1)
    longest, shortest = max(longest, lengths[i]), min(shortest, lengths[i])
  end
  local first, rest = list[1], list[1]:shape()
  rest[1] = longest - shortest
  local as = { dtype = first:dtype(), device = first:device() }
  local fill, pieces = fnn.full(rest, o.value, as), {}
  for i, x in ipairs(list) do
    local gap = fill:narrow(1, 1, longest - lengths[i])
    pieces[#pieces + 1] = o.side == "left" and gap or x
    pieces[#pieces + 1] = o.side == "left" and x or gap
  end
  rest[1] = longest
  return fnn.cat(pieces, 1):reshape(#list, unpack(rest)),
         fnn.tensor(lengths, { dtype = "i64", device = first:device() })
end

return { pad_sequence = pad_sequence }
