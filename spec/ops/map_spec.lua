local fixture = require "spec.support.fixture"

describe("map", function ()
  fixture.define(require "spec.fixtures.map", it)
end)
