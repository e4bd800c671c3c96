-- Images from files and folders of them, against what Pillow reads.
local fnn = require "fnn"
local shell = require "spec.support.shell"
local data, io = fnn.data, fnn.io

local fixtures = "spec/fixtures/images/"
local expected = dofile "spec/fixtures/image.lua"

local function fails (text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.truthy(message:find(text, 1, true), message)
  return message
end

after_each(shell.clean)

-- What Pillow reads in a file, as i64 (h, w, c).
local function pillow (name)
  local e, list = expected[name], {}
  for byte in e.data:gmatch "%x%x" do list[#list + 1] = tonumber(byte, 16) end
  return fnn.tensor(list, { dtype = "i64" }):reshape(e.shape)
end

-- The largest difference; libjpegs of other versions may round otherwise.
local function distance (x, name)
  local wanted = pillow(name)
  assert.same(wanted:shape(), x:shape(), name)
  return (x:to "i64" - wanted):abs():max():item()
end

-- A folder of copies: { ["cat/a.png"] = "photo.png" }, or text to write.
local function folder (files)
  local path = shell.folder()
  local folders = { "mkdir -p" }
  for name in pairs(files) do
    folders[#folders + 1] = (path .. "/" .. name):match "^(.*)/"
  end
  os.execute(table.concat(folders, " "))
  for name, from in pairs(files) do
    if expected[from] then from = shell.read(fixtures .. from) end
    shell.write(from, path .. "/" .. name)
  end
  return path
end

local maybe = io.has_jpeg() and it or pending

describe("read_image", function ()
  it("reads PNG", function ()
    for _, name in ipairs { "photo.png", "gray1.png", "palette4.png",
                            "alpha.png" } do
      local x = io.read_image(fixtures .. name)
      assert.equal("u8", x:dtype())
      assert.equal(0, distance(x, name), name)
      assert.same(io.read_png(fixtures .. name):totable(), x:totable())
    end
  end)

  maybe("reads JPEG of each kind", function ()
    for _, name in ipairs { "rgb.jpg", "rgb444.jpg", "progressive.jpg",
                            "restarts.jpg", "gray.jpg", "cmyk.jpg" } do
      local x = io.read_image(fixtures .. name)
      assert.is_true(distance(x, name) <= 2, name)
    end
  end)

  maybe("turns an image upright", function ()
    for tag = 2, 8 do
      local name = ("exif%d.jpg"):format(tag)
      assert.is_true(distance(io.read_image(fixtures .. name), name) <= 2,
                     name)
    end
  end)

  maybe("gives the channels that are asked for", function ()
    local path = fixtures .. "rgb.jpg"
    local rgb = io.read_image(path):to "f64"
    local gray = io.read_image(path, { channels = 1 })
    local luma = (rgb * fnn.tensor({ .299, .587, .114 },
                                   { dtype = "f64" })):sum(3)
    assert.is_true((gray:squeeze(3):to "f64" - luma):abs():max():item()
                   <= 0.5001)
    local four = io.read_image(fixtures .. "gray.jpg", { channels = 4 })
    assert.same({ 19, 26, 4 }, four:shape())
    assert.equal(255, four[1][1][4])
    fails("0 to 4", io.read_image, path, { channels = 5 })
  end)

  maybe("refuses a file that ends early, at whatever byte", function ()
    for _, name in ipairs { "rgb.jpg", "progressive.jpg" } do
      local whole = shell.read(fixtures .. name)
      local path = shell.write ""
      for n = 0, #whole - 3, 13 do
        shell.write(whole:sub(1, n), path)
        local message = fails(path, io.read_image, path)
        assert.truthy(message:find "truncated" or message:find "is not a" or
                      message:find "bad JPEG", message)
      end
    end
  end)

  maybe("refuses damaged data and sizes that the file cannot hold", function ()
    local whole = shell.read(fixtures .. "rgb.jpg")
    local path = shell.write ""
    local at = whole:find("\xff\xda", 1, true)
    local damaged = whole:sub(1, at + 40) .. ("\xff\xd9"):rep(2)
                    .. whole:sub(at + 60)
    shell.write(damaged, path)
    fails("bad JPEG image", io.read_image, path)
    -- Height and width are behind the length and the depth in SOF0.
    local sof = whole:find("\xff\xc0", 1, true)
    shell.write(whole:sub(1, sof + 4) .. "\xff\0\xff\0"
                .. whole:sub(sof + 9), path)
    fails("65280 by 65280 pixels do not fit", io.read_image, path)
  end)

  maybe("counts what an image in scans takes, though not progressive",
        function ()
    -- A gray square of 1024 pixels a side, a scan for each channel: a block is
    -- the codes 00 (no change) and 1010 (no more) of the usual tables.
    local whole = shell.read(fixtures .. "rgb444.jpg")
    local sof = whole:find("\xff\xc0", 1, true)
    local sos = whole:find("\xff\xda", 1, true)
    local text = whole:sub(1, sof + 4) .. "\4\0\4\0"
                 .. whole:sub(sof + 9, sos - 1)
    for channel = 1, 3 do
      text = text .. "\xff\xda\0\8\1" .. string.char(channel)
             .. "\0\0\x3f\0" .. ("\x28\xa2\x8a"):rep(128 * 128 // 4)
    end
    local path = shell.write(text .. "\xff\xd9")
    local x = io.read_image(path)
    assert.same({ 1024, 1024, 3 }, x:shape())
    assert.equal(128, x:to "i64":min():item())
    collectgarbage()
    local limit = fnn.memory().limit
    fnn.set_memory_limit(fnn.memory().live + (5 << 20))  -- for x, not for more
    local ok, message = pcall(io.read_image, path)
    fnn.set_memory_limit(limit)
    assert.is_false(ok)
    assert.truthy(message:find("an image in scans of 1024 by 1024", 1, true),
                  message)
  end)

  it("says what another file is", function ()
    fails("is a directory", io.read_image, shell.folder())
    fails("is not a PNG or JPEG image (it is a GIF image)", io.read_image,
          shell.write "GIF89a...........")
    fails("is not a PNG or JPEG image (it is empty)", io.read_image,
          shell.write "")
    fails("no_such_file", io.read_image, "no_such_file")
  end)

  maybe("ignores Exif that does not tell", function ()
    local whole = shell.read(fixtures .. "exif6.jpg")
    local at = whole:find("Exif\0\0", 1, true)
    local function with (tiff)
      return whole:sub(1, at + 5) .. tiff .. whole:sub(at + 6 + #tiff)
    end
    local wide = { 19, 26, 3 }
    for _, tiff in ipairs {
      "XX", "II*\0\xff\xff\xff\xff", "II*\0\8\0\0\0\xff\xff",
      "II*\0\8\0\0\0\1\0\x12\1\4\0\1\0\0\0\6\0\0\0",
      "II*\0\8\0\0\0\1\0\x12\1\3\0\1\0\0\0\9\0\0\0",
    } do
      local x = io.read_image(shell.write(with(tiff)))
      assert.same(wide, x:shape())
    end
    local big = "MM\0*\0\0\0\8\0\1\1\x12\0\3\0\0\0\1\0\6\0\0"
    assert.same({ 26, 19, 3 }, io.read_image(shell.write(with(big))):shape())
  end)
end)

describe("ImageFolder", function ()
  local function some ()
    return folder {
      ["dog/b.png"] = "photo.png", ["dog/a.PNG"] = "alpha.png",
      ["Cat/sub/deep/x.png"] = "photo.png", ["Cat/a.png"] = "gray1.png",
      ["Cat/notes.txt"] = "no image", [".hidden/x.png"] = "photo.png",
      ["dog/.x.png"] = "broken", ["readme"] = "text",
    }
  end

  it("has a class a folder, in sorted order, and items from 0 to 1",
     function ()
    local ds = data.ImageFolder(some())
    assert.same({ "Cat", "dog" }, ds.classes)
    assert.equal("ImageFolder of 4 items: f32 (3, 19, 26), i64 ()",
                 tostring(ds))
    assert.same({ 0, 0, 1, 1 }, ds:labels():totable())
    assert.same({ 1, 0 }, ds:items({ 3, 0 }, 2):totable())
    assert.same({ 1, 3, 19, 26 }, ds:items({ 3 }, 1):shape())
    fails("field", ds.items, ds, { 0 }, 3)
    fails("number expected", ds.items, ds, { 0 }, "x")
    local x = ds[2][1]  -- Cat/sub/deep/x.png
    local wanted = pillow "photo.png":permute(3, 1, 2):to "f32" / 255
    assert.same(wanted:totable(), x:totable())
    assert.is_true(ds[1][1]:eq(0):logical_or(ds[1][1]:eq(1)):all():item())
  end)

  it("is gray, resized, one-hot", function ()
    local path = some()
    local ds = data.ImageFolder(path, { size = { 7, 9 }, gray = true,
                                        one_hot = true })
    assert.equal("ImageFolder of 4 items: f32 (1, 7, 9), f32 (2)",
                 tostring(ds))
    assert.same({ { 1, 0 }, { 1, 0 }, { 0, 1 }, { 0, 1 } },
                ds:labels():totable())
    -- Pillow rounds between its passes and at the end.
    local x = data.ImageFolder(path, { size = { 7, 9 } })[2][1] * 255
    local far = (x:permute(2, 3, 1) - pillow("small"):to "f32"):abs():max()
    assert.is_true(far:item() < 1.01, far:item())
  end)

  it("decodes what is read and nothing else", function ()
    local ds = data.ImageFolder(folder {
      ["a/1.png"] = "photo.png", ["a/2.png"] = "broken",
      ["b/1.png"] = "photo.png", ["b/2.png"] = "\x89PNG too",
    }, { size = { 4, 4 } })
    assert.same({ 0, 0, 1, 1 }, ds:labels():totable())
    local train, test = ds:split_stratified(0.5, { seed = 1 })
    assert.same({ 2, 2 }, { #train, #test })
    assert.same({ "a", "b" }, test.classes)
    assert.same({ 1, 4, 4 }, { (ds:items { 2 }):size(1),
                               (ds:items { 2 }):size(3),
                               (ds:items { 2 }):size(4) })
    for _, prefetch in ipairs { 0, 2 } do
      local loader = data.DataLoader(ds, { prefetch = prefetch })
      assert.truthy(loader:next())
      local message = fails("a/2.png", loader.next, loader)
      assert.truthy(message:find("is not a PNG or JPEG", 1, true), message)
    end
  end)

  it("walks down, but not through links to folders", function ()
    local path = folder { ["a/1.png"] = "photo.png",
                          ["b/1.png"] = "photo.png" }
    os.execute(("ln -s .. %s/a/up; ln -s 1.png %s/a/2.png"):format(path, path))
    os.execute(("ln -s nowhere %s/a/3.png; ln -s a %s/c"):format(path, path))
    local ds = data.ImageFolder(path)
    assert.same({ "a", "b", "c" }, ds.classes)
    assert.same({ 0, 0, 1, 2, 2 }, ds:labels():totable())
  end)

  it("says what is wrong", function ()
    local photo = "photo.png"
    local path = folder { ["a/1.png"] = photo, ["b/x.txt"] = "none" }
    fails("/b: this class has no image", data.ImageFolder, path)
    fails("found no folder", data.ImageFolder, path .. "/a")
    fails("cannot open the folder", data.ImageFolder, path .. "/none")
    fails("only PNG and JPEG images are read", data.ImageFolder,
          folder { ["a/1.webp"] = photo })
    fails("{ height, width }", data.ImageFolder, path, { size = { 3 } })
    fails("1 to 2^20", data.ImageFolder, path, { size = { 0, 3 } })
    fails("1 to 2^20", data.ImageFolder, path, { size = { 0, 0 } })
    fails("ImageFolder: expected a path, got table", data.ImageFolder, {})
    fails("1 to 2^20", data.ImageFolder, path, { size = { 3, 1 << 21 } })
    fails("did you mean 'one_hot'?", data.ImageFolder, path, { onehot = true })
    if io.has_jpeg() then
      local ds = data.ImageFolder(folder { ["a/1.png"] = photo,
                                           ["a/2.jpg"] = "exif6.jpg" })
      local message = fails("has 26 by 19 pixels, the first image has 19 by "
                            .. "26", ds.all, ds)
      assert.truthy(message:find("a/2.jpg: ", 1, true), message)
    end
  end)

  it("gives the same batches ahead and with a stream, bit for bit", function ()
    local ds = data.ImageFolder(some(), { size = { 8, 8 } })
    local function bits (source)
      local list = {}
      for e = 0, 1 do
        for x, y in source:epoch(e) do
          list[#list + 1] = { x:totable(), y:totable() }
        end
      end
      return list
    end
    local o = { batch = 3, shuffle = true, seed = 4 }
    local plain = bits(data.DataLoader(ds, o))
    assert.equal(4, #plain)
    assert.same(plain, bits(ds:stream(o)))
    o.prefetch = 2
    assert.same(plain, bits(ds:stream(o)))
  end)
end)

describe("flip_horizontal", function ()
  local x = fnn.arange(2 * 3 * 2 * 4):reshape(2, 3, 2, 4):to "f32"
  local y = fnn.tensor({ 5, 6 }, { dtype = "i64" })
  local images = data.TensorDataset(x, y)

  it("doubles the items and keeps the labels", function ()
    local ds = images:flip_horizontal()
    local all, labels = ds:all()
    assert.equal(4, #ds)
    assert.same({ 5, 6, 5, 6 }, labels:totable())
    assert.same(x:totable(), all:narrow(1, 1, 2):totable())
    assert.same(x:flip(4):totable(), all:narrow(1, 3, 2):totable())
  end)

  it("twice is as before", function ()
    local all = images:flip_horizontal(4):flip_horizontal():all()
    -- as is, mirrored, mirrored, mirrored twice
    assert.same(x:totable(), all:narrow(1, 7, 2):totable())
    assert.same(all:narrow(1, 3, 2):totable(), all:narrow(1, 5, 2):totable())
  end)

  it("takes rows of pixels, of any dtype", function ()
    for _, dtype in ipairs { "u8", "f32", "f64", "i64" } do
      local rows = fnn.tensor({ { 1, 2, 3, 4, 5, 6 } }, { dtype = dtype })
      local ds = data.TensorDataset(rows):flip_horizontal(3)
      assert.same({ { 1, 2, 3, 4, 5, 6 }, { 3, 2, 1, 6, 5, 4 } },
                  ds:all():totable())
    end
  end)

  it("refuses a width that does not fit", function ()
    local rows = data.TensorDataset(fnn.zeros(2, 6))
    fails("a width of 4 does not fit items of shape (6)",
          rows.flip_horizontal, rows, 4)
    fails("a width of 0", rows.flip_horizontal, rows)
    fails("(expected the last dim)", images.flip_horizontal, images, 2)
    for _, shape in ipairs { { 3 }, { 3, 2, 0 }, { 3, 0 } } do
      local ds = data.TensorDataset(fnn.zeros(shape))
      fails("expected images or rows", ds.flip_horizontal, ds, 1)
    end
  end)
end)
