-- sampling.lua - what fnn.text.Sampler does, written slowly: everything is
-- sorted, in double precision.

local sampling = {}

local function penalized(logits, o, history)
  local x, counts = { table.unpack(logits) }, {}
  for _, id in ipairs(history or {}) do counts[id] = (counts[id] or 0) + 1 end
  for id, count in pairs(counts) do
    local v, r = x[id + 1], o.repetition_penalty or 1
    v = v > 0 and v / r or v * r
    x[id + 1] = v - (o.frequency_penalty or 0) * count -
                (o.presence_penalty or 0)
  end
  return x
end

-- The first entries of the list whose probabilities, of all, come to p.
local function nucleus(list, p)
  local total, sum, kept = 0, 0, {}
  for _, e in ipairs(list) do total = total + e.w end
  for _, e in ipairs(list) do
    kept[#kept + 1] = e
    sum = sum + e.w
    if sum >= p * total then break end
  end
  return kept
end

-- The probabilities of ids: a list, where p[id + 1] is that of id.
function sampling.probabilities(logits, o, history)
  local list, total, p = {}, 0, {}
  for i, x in ipairs(penalized(logits, o, history)) do
    list[i] = { id = i - 1, x = x }
    p[i] = 0
  end
  table.sort(list, function(a, b)
    if a.x ~= b.x then return a.x > b.x end
    return a.id < b.id
  end)
  local t, largest = o.temperature or 1, list[1].x
  if t == 0 then
    p[list[1].id + 1] = 1
    return p
  end
  if o.top_k then list = { table.unpack(list, 1, o.top_k) } end
  for _, e in ipairs(list) do e.w = math.exp((e.x - largest) / t) end
  if o.top_p and o.top_p < 1 then list = nucleus(list, o.top_p) end
  local kept = {}
  for _, e in ipairs(list) do
    if e.w >= (o.min_p or 0) * list[1].w then kept[#kept + 1] = e end
  end
  for _, e in ipairs(kept) do total = total + e.w end
  for _, e in ipairs(kept) do p[e.id + 1] = e.w / total end
  return p
end

-- The id where the sum of probabilities, in the order of ids, passes u.
function sampling.id_at(p, u)
  local sum, last = 0, nil
  for i, v in ipairs(p) do
    sum = sum + v
    if v > 0 then last = i - 1 end
    if sum > u then return i - 1 end
  end
  return last
end

-- The statistic of Pearson for counts of n draws, and how many degrees of
-- freedom it has; ids that are expected less than 5 times count as one.
function sampling.chi_squared(counts, p, n)
  local sum, free, rest, rest_expected = 0, -1, 0, 0
  for i, v in ipairs(p) do
    local seen, expected = counts[i - 1] or 0, v * n
    if v == 0 and seen > 0 then return math.huge, 1 end
    if expected >= 5 then
      sum, free = sum + (seen - expected) ^ 2 / expected, free + 1
    else
      rest, rest_expected = rest + seen, rest_expected + expected
    end
  end
  if rest_expected >= 5 then
    sum = sum + (rest - rest_expected) ^ 2 / rest_expected
    free = free + 1
  end
  return sum, free
end

-- What the statistic exceeds with probability 0.001, by Wilson and Hilferty's
-- approximation: the 0.999 quantile of the normal law is 3.0902.
function sampling.critical(free)
  if free == 0 then return 1e-9 end
  local v = 2 / (9 * free)
  return free * (1 - v + 3.0902 * math.sqrt(v)) ^ 3
end

return sampling
