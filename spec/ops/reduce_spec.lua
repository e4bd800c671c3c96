local fixture = require "spec.support.fixture"

describe("reduce", function ()
  fixture.define(require "spec.fixtures.reduce", it)
end)
