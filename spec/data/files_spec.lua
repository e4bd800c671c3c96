-- Datasets from files.
local fnn = require "fnn"
local shell = require "spec.support.shell"
local data, io = fnn.data, fnn.io

local function fails (text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.truthy(message:find(text, 1, true), message)
  return message
end

after_each(shell.clean)

describe("from_csv", function ()
  it("takes the last columns as targets", function ()
    local path = shell.write "a,b,c,d\n1,2,3,4\r\n\"5\",6,7,8.5\n\n"
    local ds, names = data.from_csv(path, 2)
    local x, y = ds:all()
    assert.same({ { 1, 2 }, { 5, 6 } }, x:totable())
    assert.same({ { 3, 4 }, { 7, 8.5 } }, y:totable())
    assert.same({ "a", "b", "c", "d" }, names)
  end)

  it("takes options of read_csv", function ()
    local path = shell.write "1;2\n3;4\n"
    local ds, names = data.from_csv(path, 1, { separator = ";",
                                               dtype = "f64" })
    assert.same({ { 1 }, { 3 } }, (ds:all()):totable())
    assert.equal("f64", (ds:all()):dtype())
    assert.same({}, names)
    fails("did you mean 'separator'?", data.from_csv, path, 1,
          { seperator = ";" })
    fails("from_csv_labeled", data.from_csv, path, 1, { label = 1 })
  end)

  it("names the line of what is no number, and of a ragged row", function ()
    local message = fails("x1", data.from_csv, shell.write "1,2\n3,x1\n", 1)
    assert.truthy(message:find(":2:", 1, true), message)
    message = fails("", data.from_csv, shell.write "1,2\n3,4\n5\n", 1)
    assert.truthy(message:find(":3:", 1, true), message)
    fails("2 target columns of the 2", data.from_csv,
          shell.write "1,2\n", 2)
    fails("0 target columns", data.from_csv, shell.write "1,2\n", 0)
    fails("no_such_file", data.from_csv, "no_such_file", 1)
  end)
end)

describe("from_csv_labeled", function ()
  local iris = "sl,sw,species\n5.1,3.5,setosa\n7.0,3.2,versicolor\n"
               .. "6.3,3.3,virginica\n4.9,3.0,setosa\n"

  it("has class ids in the sorted order of their names", function ()
    local ds, classes, columns = data.from_csv_labeled(shell.write(iris))
    local x, y = ds:all()
    assert.same({ "setosa", "versicolor", "virginica" }, classes)
    assert.same({ "sl", "sw" }, columns)
    assert.same({ 0, 1, 2, 0 }, y:totable())
    assert.equal("i64", y:dtype())
    assert.near(6.3, x[3][1], 1e-6)
    local hot = data.one_hot_targets(y, #classes)
    assert.same({ 1, 0, 0 }, hot[4]:totable())
  end)

  it("takes another column", function ()
    local path = shell.write "b,1\na,2\n"
    local ds, classes = data.from_csv_labeled(path, { label = 1,
                                                      header = false })
    local x, y = ds:all()
    assert.same({ "a", "b" }, classes)
    assert.same({ { 1 }, { 2 } }, x:totable())
    assert.same({ 1, 0 }, y:totable())
  end)
end)

describe("from_npy", function ()
  it("reads two arrays of as many rows", function ()
    local a, b = shell.write "", shell.write ""
    io.write_npy(a, fnn.arange(6):reshape(3, 2))
    io.write_npy(b, fnn.tensor({ 2, 1, 0 }, { dtype = "i64" }))
    local x, y = data.from_npy(a, b):all()
    assert.same({ { 0, 1 }, { 2, 3 }, { 4, 5 } }, x:totable())
    assert.same({ 2, 1, 0 }, y:totable())
    io.write_npy(b, fnn.zeros(2))
    local message = fails("has 3 rows", data.from_npy, a, b)
    assert.truthy(message:find(b, 1, true), message)
  end)
end)

-- The bytes of IDX files, written from the format's description: type 8 is
-- bytes, the dims are big-endian.
local function images (n, h, w, bytes)
  return ("\0\0\8\3" .. (">I4I4I4"):pack(n, h, w)) .. bytes
end

local function labels (n, bytes)
  return "\0\0\8\1" .. (">I4"):pack(n) .. bytes
end

describe("from_idx", function ()
  local function pair (x, y) return shell.write(x), shell.write(y) end

  it("has images from 0 to 1 and ids", function ()
    local ds = data.from_idx(pair(
      images(2, 2, 3, "\0\51\255\0\0\0" .. "\1\2\3\4\5\6"),
      labels(2, "\7\3")))
    assert.equal("TensorDataset of 2 items: f32 (1, 2, 3), i64 ()",
                 tostring(ds))
    local x, y = ds:all()
    assert.same({ 7, 3 }, y:totable())
    assert.near(0.2, x[1][1][1][2], 1e-7)
    assert.equal(1, x[1][1][1][3])
    assert.near(6 / 255, x[2][1][2][3], 1e-8)
  end)

  it("has rows when asked, and reads gzip", function ()
    local x, y = pair(images(2, 1, 3, "\0\51\255\1\2\3"), labels(2, "\7\3"))
    for _, path in ipairs { x, y } do
      assert.truthy(os.execute("gzip -f " .. path))
    end
    local ds = data.from_idx(x .. ".gz", y .. ".gz", { flatten = true })
    assert.equal("TensorDataset of 2 items: f32 (3), i64 ()", tostring(ds))
    local rows = ds:flip_horizontal(3):all():totable()
    assert.near(0.2, rows[1][2], 1e-7)
    assert.same({ rows[2][3], rows[2][1] }, { rows[4][1], rows[4][3] })
    os.remove(x .. ".gz")
    os.remove(y .. ".gz")
    fails("did you mean 'flatten'?", data.from_idx, x, y, { flaten = true })
  end)

  it("refuses a wrong magic, a short file, more bytes than it says",
     function ()
    local y = labels(1, "\0")
    fails("an IDX file", data.from_idx, pair("\0\1\8\3" .. ("\0"):rep(12), y))
    fails("an IDX file", data.from_idx, pair("\0\0\7\1\0\0\0\1\0", y))
    fails("an IDX file", data.from_idx, pair("", y))
    fails("truncated", data.from_idx, pair(images(1, 2, 2, "\0\0\0"), y))
    fails("too large", data.from_idx,
          pair(images(0xffffffff, 0xffff, 0xffff, ""), y))
    fails("after its end", data.from_idx,
          pair(images(1, 1, 1, "\0\0"), y))
  end)

  it("refuses other shapes and another count, naming both files",
     function ()
    local x, y = pair(images(1, 1, 1, "\0"), labels(2, "\0\1"))
    local message = fails("has 1 images", data.from_idx, x, y)
    assert.truthy(message:find("has 2 labels", 1, true), message)
    assert.truthy(message:find(x, 1, true) and message:find(y, 1, true))
    assert.truthy(message:find("files_spec.lua:", 1, true), message)
    fails("expected images", data.from_idx, y, y)
    fails("expected labels", data.from_idx, x, x)
  end)
end)

describe("digits", function ()
  it("are 1797 of 8 by 8, from 0 to 1", function ()
    local ds = data.digits()
    assert.equal(1797, #ds)
    local x, y = ds:all()
    assert.same({ 1797, 1, 8, 8 }, x:shape())
    -- sums and counts of the original file
    assert.near(561718 / 16, x:sum():item(), 0.1)
    assert.equal(1, x:max():item())
    local n = data.one_hot_targets(y, 10):sum(1):totable()
    assert.same({ 178, 182, 177, 183, 181, 182, 181, 179, 174, 180 }, n)
  end)
end)

-- A folder with a pair of small files under the names of the test set.
local function folder (ending, pictures)
  local path = shell.folder()
  shell.write(pictures or images(2, 1, 2, "\0\255\51\0"),
              path .. "/t10k-images" .. ending:format(3))
  shell.write(labels(2, "\9\0"), path .. "/t10k-labels" .. ending:format(1))
  return path
end

-- Runs Lua in a program of its own: what it prints, or its error.
local function lua (env, text, ...)
  local script = shell.write("local fnn = require 'fnn'\n"
                             .. text:format(...))
  local out, err, code = shell.run(shell.FNN .. " " .. script, { env = env })
  return out, err, code
end

local show = [[
  local ds, classes = fnn.data.%s("test", %s)
  print(ds, ds[1][2]:item(), classes[10])
]]

describe("mnist and fashion_mnist", function ()
  it("read the folder given, under the names in use", function ()
    for _, ending in ipairs { "-idx%d-ubyte", ".idx%d-ubyte" } do
      local ds, classes = data.mnist("test", { root = folder(ending) .. "/" })
      assert.equal("TensorDataset of 2 items: f32 (1, 1, 2), i64 ()",
                   tostring(ds))
      assert.equal("9", classes[10])
    end
    local root = folder "-idx%d-ubyte"
    assert.truthy(os.execute("gzip " .. root .. "/*"))
    assert.equal(2, #data.fashion_mnist("test", { root = root }))
    local above = shell.folder()
    os.execute(("mv %s %s/fashion-mnist"):format(root, above))
    assert.equal(2, #data.fashion_mnist("test", { root = above }))
  end)

  it("look in FNN_DATA, then in the cache", function ()
    local root = folder "-idx%d-ubyte"
    local out = lua("FNN_OFFLINE=1 FNN_DATA=" .. root, show, "mnist", "nil")
    assert.equal("TensorDataset of 2 items: f32 (1, 1, 2), i64 ()\t9\t9\n",
                 out)
    local cache = shell.folder()
    os.execute(("mkdir -p %s/fnn && mv %s %s/fnn/mnist"):format(cache, root,
                                                               cache))
    out = lua("FNN_OFFLINE=1 XDG_CACHE_HOME=" .. cache, show, "mnist", "{}")
    assert.truthy(out:find("2 items", 1, true), out)
  end)

  it("say which files to put where", function ()
    local root = shell.folder()
    local message = fails("MNIST is not on this machine", data.mnist, "train",
                          { root = root, download = false })
    for _, part in ipairs { "train-images-idx3-ubyte.gz", root, "FNN_DATA",
                            "train-labels-idx1-ubyte.gz",
                            "option download is false",
                            "files_spec.lua:" } do
      assert.truthy(message:find(part, 1, true), message)
    end
    local _, err = lua("FNN_OFFLINE=1", show, "fashion_mnist",
                       ("{ root = %q }"):format(root))
    assert.truthy(err:find("FNN_OFFLINE is set", 1, true), err)
    assert.truthy(err:find("dataset-fashion-mnist", 1, true), err)
    assert.is_nil((data.try_mnist("test", { root = root,
                                            download = false })))
  end)

  it("refuse another part, and options that are not theirs", function ()
    fails("expected 'train' or 'test', got valid", data.mnist, "valid")
    fails("got nil", data.fashion_mnist)
    fails("did you mean 'root'?", data.mnist, "test", { rot = "x" })
    fails("option 'root': expected a string", data.mnist, "test",
          { root = 1 })
  end)

  local installed = io.is_file(
    "/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz")
  local maybe = installed and it or pending
  maybe("have 60,000 and 10,000 real pictures", function ()
    local train, classes = data.fashion_mnist "train"
    assert.equal(60000, #train)
    assert.equal(10000, #data.fashion_mnist "test")
    -- The mean of all pixels is 72.94035 of 255, by numpy; the first is a
    -- boot, and each class has 6000.
    local sum, counts = 0, fnn.zeros(10)
    for x, y in train:batches(5000) do
      sum = sum + x:sum():item()
      counts = counts + data.one_hot_targets(y, 10):sum(1)
    end
    assert.near(72.94035 / 255, sum / (60000 * 784), 1e-6)
    assert.equal("boot", classes[train[1][2]:item() + 1])
    assert.same({ 6000, 6000 }, { counts:min():item(), counts:max():item() })
  end)
end)

describe("io.make_folder", function ()
  it("makes what is missing of a path, and leaves what is there", function ()
    local top = shell.folder()
    local path = top .. "/a b/c"
    io.make_folder(path)
    io.write_text(path .. "/x", "kept")
    io.make_folder(path .. "/")
    assert.equal("kept", io.read_text(path .. "/x"))
    fails("x/y: cannot make the folder: Not a directory", io.make_folder,
          path .. "/x/y")
    fails("cannot make the folder: No such file or directory", io.make_folder,
          "")
  end)
end)
