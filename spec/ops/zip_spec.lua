local fixture = require "spec.support.fixture"

describe("zip", function ()
  fixture.define(require "spec.fixtures.zip", it)
end)
