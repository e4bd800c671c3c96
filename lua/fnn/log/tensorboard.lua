-- tensorboard.lua - a log as event files of TensorBoard: the sink of
-- fnn.log.tensorboard.
--
-- A file is a row of records (TensorFlow's record_writer.h):
--
--   length of the data   u64       crc of these 8 bytes   u32
--   data                           crc of the data        u32
--
-- where crc is CRC-32C, turned and shifted.  The data is an Event in the wire
-- format of protocol buffers, whose fields (event.proto, summary.proto,
-- tensor.proto of tensorboard/compat/proto) have these numbers:
--
--   Event        wall_time 1 double, step 2 int64, file_version 3 string,
--                summary 5, session_log 7
--   SessionLog   status 1 (START = 1)
--   Summary      value 1, for each
--   Value        tag 1 string, simple_value 2 float, image 4, histo 5,
--                tensor 8, metadata 9
--   Image        height 1, width 2, colorspace 3, encoded_image_string 4
--   Histogram    min 1, max 2, num 3, sum 4, sum_squares 5 doubles,
--                bucket_limit 6, bucket 7, packed doubles
--   Tensor       dtype 1 (DT_STRING = 7), tensor_shape 2, string_val 8
--   Shape        dim 2, for each; its size 1
--   Metadata     plugin_data 1; its plugin_name 1

local fnn, _, internals = ...

local ipairs = ipairs
local char, format, gsub, pack, rep =
  string.char, string.format, string.gsub, string.pack, string.rep
local concat, unpack = table.concat, table.unpack

-- {======================================================
-- Protocol buffers
-- =======================================================

-- Seven bits a byte, the lowest first; a negative number is its 64 bits.
local function varint (n)
  local bytes = {}
  while n < 0 or n > 127 do
    bytes[#bytes + 1] = char(n & 127 | 128)
    n = n >> 7
  end
  bytes[#bytes + 1] = char(n)
  return concat(bytes)
end

local function integer (field, n) return varint(field << 3) .. varint(n) end

local function double (field, v)
  return varint(field << 3 | 1) .. pack("<d", v)
end

local function float (field, v)
  return varint(field << 3 | 5) .. pack("<f", v)
end

local function bytes (field, s)
  return varint(field << 3 | 2) .. varint(#s) .. s
end

local function doubles (field, list)
  return bytes(field, pack("<" .. rep("d", #list), unpack(list)))
end

-- }======================================================

-- {======================================================
-- Records
-- =======================================================

local function masked (s)
  local c = internals.crc32c(s)
  return ((c >> 15 | c << 17 & 0xffffffff) + 0xa282ead8) & 0xffffffff
end

local function record (data)
  local length = pack("<I8", #data)
  return concat { length, pack("<I4", masked(length)), data,
                  pack("<I4", masked(data)) }
end

local function event (...)
  return record(double(1, internals.now()) .. concat { ... })
end

local function value (tag, ...)
  return bytes(1, bytes(1, tag) .. concat { ... })
end

local function summary (step, ...)
  return event(integer(2, step), bytes(5, concat { ... }))
end

-- }======================================================

local count = 0  -- files made by this state: their names differ

-- A new file: TensorBoard reads those of a folder in the order of their names.
local function open (folder)
  fnn.io.make_folder(folder)
  local host, process = internals.writer()
  local path
  repeat
    path = format("%s/events.out.tfevents.%010d.%s.%d.%d", folder,
                  internals.now() // 1 | 0, gsub(host, "[^%w.-]", "-"),
                  process, count)
    count = count + 1
  until not fnn.io.is_file(path)
  return (internals.appender(path, true))
end

local function histogram_value (name, h)
  return value(name, bytes(5, concat {
    double(1, h.min), double(2, h.max), double(3, h.count), double(4, h.sum),
    double(5, h.squares), doubles(6, h.edges), doubles(7, h.counts),
  }))
end

return function (folder, resume)
  local append = open(folder)
  local sink = { name = folder }
  append(event(bytes(3, "brain.Event:2")))
  if resume then  -- what other files have from this step on does not count
    append(event(integer(2, resume), bytes(7, integer(1, 1))))
  end

  function sink.scalars (list, step)
    local parts = {}
    for i, pair in ipairs(list) do
      parts[i] = value(pair[1], float(2, pair[2]))
    end
    append(summary(step, unpack(parts)))
  end

  function sink.image (name, list, step)
    for i, image in ipairs(list) do
      append(summary(step, value(
        #list > 1 and format("%s/%d", name, i) or name,
        bytes(4, concat {
          integer(1, image.height), integer(2, image.width),
          integer(3, image.channels), bytes(4, image.png),
        }))))
    end
  end

  function sink.text (name, text, step)
    append(summary(step, value(
      name, bytes(9, bytes(1, bytes(1, "text"))),
      bytes(8, concat { integer(1, 7), bytes(2, bytes(2, integer(1, 1))),
                        bytes(8, text) }))))
  end

  function sink.histogram (name, h, step)
    local parts = {}
    if h.count > 0 then parts[1] = histogram_value(name, h) end
    if h.nonfinite > 0 then
      parts[#parts + 1] = value(name .. "/nonfinite", float(2, h.nonfinite))
    end
    append(summary(step, unpack(parts)))
  end

  function sink.close () append() end

  return sink
end
