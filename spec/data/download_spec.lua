-- Downloads, from a server on this machine.
local fnn = require "fnn"
local shell = require "spec.support.shell"
local data, io = fnn.data, fnn.io
local open = _G.io.open

local folder, url, stop

-- A file server of the folder's files, on a port of its own choice; nil
-- where there is no Python or no libcurl.
local function serve (path)
  local log, script = shell.write "", shell.write [[
import functools, http.server, sys, threading
handler = functools.partial(http.server.SimpleHTTPRequestHandler,
                            directory=sys.argv[1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
threading.Timer(120, server.shutdown).start()
with open(sys.argv[2], "w") as f:
    f.write(str(server.server_port) + "\n")
server.serve_forever()
]]
  os.execute(("python3 %s %s %s >/dev/null 2>&1 & echo $! >%s.pid"):format(
    script, path, log, log))
  for _ = 1, 100 do
    local port = shell.read(log):match "(%d+)\n"
    if port then
      return "http://127.0.0.1:" .. port, function ()
        os.execute(("kill $(cat %s.pid); rm -f %s.pid"):format(log, log))
      end
    end
    os.execute "sleep 0.05"
  end
end

local function has_curl ()
  local _, message = io.try_download("http://127.0.0.1:1/x", "/dev/null/x")
  return not message:find "libcurl"
end

local ready = shell.has "python3" and has_curl()
local maybe = ready and it or pending

setup(function ()
  if not ready then return end
  folder = shell.folder()
  shell.write("123456789", folder .. "/nine")
  url, stop = serve(folder)
end)

teardown(function ()
  if stop then stop() end
  shell.clean()
end)

local function exists (path)
  local f = open(path)
  if f then f:close() end
  return f ~= nil
end

local function fails (text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.truthy(message:find(text, 1, true), message)
  return message
end

local function listing (path)
  local p = _G.io.popen("ls -A " .. path)
  local text = p:read "a"
  p:close()
  return text
end

describe("io.download", function ()
  -- The check value of CRC-32: of the nine digits 1 to 9 it is cbf43926.
  local right = { size = 9, crc32 = 0xcbf43926 }

  maybe("makes the folders and keeps what has the right sum", function ()
    local to = shell.folder()
    io.download(url .. "/nine", to .. "/a/b/nine", right)
    assert.equal("123456789", shell.read(to .. "/a/b/nine"))
    assert.equal("nine\n", listing(to .. "/a/b"))
    io.download(url .. "/nine", to .. "/plain")
    assert.equal("123456789", shell.read(to .. "/plain"))
  end)

  maybe("takes the sum of what is in gzip", function ()
    os.execute("gzip -k " .. folder .. "/nine")
    local to = shell.folder() .. "/nine.gz"
    io.download(url .. "/nine.gz", to, right)
    assert.equal("\31\139", shell.read(to):sub(1, 2))
  end)

  maybe("leaves nothing of what is wrong, nor harms what was there",
        function ()
    local to = shell.folder()
    shell.write("old", to .. "/nine")
    for text, o in pairs {
      ["checksum cbf43926 (expected 00000001)"] = { size = 9, crc32 = 1 },
      ["has 9 bytes (expected 8)"] = { size = 8, crc32 = 0xcbf43926 },
    } do
      fails(text, io.download, url .. "/nine", to .. "/nine", o)
    end
    fails("the server answered 404", io.download, url .. "/none",
          to .. "/nine", right)
    shell.write(("x"):rep(100000), folder .. "/long")
    fails("more bytes", io.download, url .. "/long", to .. "/nine", right)
    assert.equal("old", shell.read(to .. "/nine"))
    assert.equal("nine\n", listing(to))
  end)

  maybe("names the address where nobody answers", function ()
    local to = shell.folder() .. "/x"
    local message = fails("http://127.0.0.1:1/x: ", io.download,
                          "http://127.0.0.1:1/x", to)
    assert.truthy(message:find("download_spec.lua:", 1, true), message)
    fails("file:///etc/passwd", io.download, "file:///etc/passwd", to)
    assert.is_false(exists(to))
  end)

  it("wants both size and sum, or neither", function ()
    fails("go together", io.download, "http://127.0.0.1:1/x", "x",
          { size = 1 })
    fails("did you mean 'size'?", io.download, "http://127.0.0.1:1/x", "x",
          { sise = 1 })
  end)
end)

describe("data.mnist, which is not here,", function ()
  local real = "/usr/share/datasets/fashion-mnist/t10k-"
  local function link ()
    for _, name in ipairs { "images-idx3-ubyte.gz", "labels-idx1-ubyte.gz" } do
      os.execute(("ln -sf %s%s %s/t10k-%s"):format(real, name, folder, name))
    end
  end

  local installed = ready and io.is_file(real .. "images-idx3-ubyte.gz")
  local real_maybe = installed and it or pending

  real_maybe("is fetched once from the first mirror that is right",
             function ()
    link()
    local to = shell.folder() .. "/new"
    local mirrors = { url .. "/nowhere", url }
    local ds = data.fashion_mnist("test", { root = to, mirror = mirrors })
    assert.equal(10000, #ds)
    assert.equal("t10k-images-idx3-ubyte.gz\nt10k-labels-idx1-ubyte.gz\n",
                 listing(to))
    -- The second time nothing is asked of a network.
    assert.equal(10000, #data.fashion_mnist("test", { root = to,
      mirror = "http://127.0.0.1:1" }))
  end)

  real_maybe("goes to the cache without a root", function ()
    link()
    local cache, home = shell.folder(), shell.folder()
    local script = shell.write(([[
      local d = require "fnn".data
      print(d.try_mnist("test", { mirror = %q }))
    ]]):format(url))
    local out = shell.run(shell.FNN .. " " .. script,
                          { env = "XDG_CACHE_HOME=" .. cache })
    -- The server has Fashion-MNIST under these names: the sum tells.
    assert.truthy(out:find("checksum 80142c1f (expected 4ab9eff9)", 1, true),
                  out)
    assert.truthy(out:find(cache .. "/fnn/mnist", 1, true), out)
    assert.equal("", listing(cache .. "/fnn/mnist"))
    out = shell.run(shell.FNN .. " " .. script,
                    { env = "-u XDG_CACHE_HOME HOME=" .. home })
    assert.truthy(out:find(home .. "/.cache/fnn/mnist", 1, true), out)
  end)

  maybe("says why each mirror failed, and what to do", function ()
    local to = shell.folder()
    local message = fails("MNIST is not on this machine", data.mnist, "train",
      { root = to, mirror = { url .. "/none", "http://127.0.0.1:1" } })
    for _, part in ipairs { "the server answered 404", "127.0.0.1:1/train-",
                            "Put train-images-idx3-ubyte.gz", to } do
      assert.truthy(message:find(part, 1, true), message)
    end
  end)

  maybe("is left alone when downloads are off", function ()
    local to = shell.folder()
    local script = shell.write(([[
      local d = require "fnn".data
      print(d.try_mnist("test", { root = %q, mirror = %q }))
    ]]):format(to, url))
    local out = shell.run(shell.FNN .. " " .. script,
                          { env = "FNN_OFFLINE=1" })
    assert.truthy(out:find("FNN_OFFLINE is set", 1, true), out)
    assert.equal("", listing(to))
  end)
end)
