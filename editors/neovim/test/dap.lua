-- Debugs a kernel with nvim-dap: `PTOC=path/to/ptoc NVIM_DAP=path/to/nvim-dap nvim --headless -u editors/neovim/test/dap.lua`.
-- Stops at a breakpoint, looks at a tile, steps forwards and back, and runs to the end.

local here = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h")
local text = {
  "kernel scale(x: in f32[M, N], y: out f32[M, N]) {",
  "    grid (i in tiles(M, 16), j in tiles(N, 64));",
  "    let t = tile Vec<f32, i, j>;",
  "    TLOAD(t, x.tile(i, j));",
  "    TMULS(t, t, 2.0);",
  "    TSTORE(y.tile(i, j), t);",
  "}",
}

local function fail(why)
  io.stderr:write("failed: " .. why .. "\n")
  vim.cmd("cquit 1")
end

local function main()
  vim.opt.runtimepath:prepend(assert(os.getenv("NVIM_DAP"), "NVIM_DAP says where nvim-dap is"))
  vim.g.ptoc = { cmd = { os.getenv("PTOC") or "ptoc", "lsp" } }
  vim.cmd("source " .. here .. "/../plugin/ptoc.lua")
  local dap = require("dap")
  local folder = vim.fn.tempname()
  vim.fn.mkdir(folder, "p")
  vim.fn.writefile(text, folder .. "/scale.tile")
  vim.cmd("edit " .. folder .. "/scale.tile")

  local ended, stops = false, 0
  dap.listeners.after.event_terminated.test = function() ended = true end
  dap.listeners.after.event_stopped.test = function() stops = stops + 1 end

  -- The run has stopped so often, and stands at this line. Frames come after the stop.
  local function stands(what, times, line)
    local function there()
      local session = dap.session()
      return stops == times and session and session.current_frame and session.current_frame.line == line
    end
    if not vim.wait(60000, there, 20) then
      fail(what .. ": there were " .. stops .. " stops; " .. vim.inspect(dap.session() and dap.session().current_frame))
    end
    print("ok: " .. what .. "\n")
  end

  local function value(expression)
    local answer
    dap.session():request("evaluate", { expression = expression, frameId = dap.session().current_frame.id, context = "watch" },
      function(err, found) answer = err and err.message or found.result end)
    vim.wait(60000, function() return answer ~= nil end, 20)
    return answer
  end

  vim.api.nvim_win_set_cursor(0, { 5, 0 })
  dap.toggle_breakpoint("i == 1")
  local configuration = vim.tbl_extend("force", dap.configurations.tile[1],
    { program = folder .. "/scale.tile", define = { "M=18", "N=70" }, stopOnEntry = false })
  dap.run(configuration)
  stands("a breakpoint with a condition", 1, 5)
  local valid = value("t.valid")
  if valid ~= "(2, 64)" then
    fail("t.valid is " .. vim.inspect(valid))
  end
  print("ok: a property of a tile\n")
  dap.step_over()
  stands("a step", 2, 6)
  dap.step_back()
  stands("a step back", 3, 5)
  dap.clear_breakpoints()
  dap.continue()
  if not vim.wait(60000, function() return ended end, 20) then
    fail("the run does not end")
  end
  print("ok: the end\n")
  vim.cmd("qall!")
end

local ok, why = pcall(main)
if not ok then
  fail(tostring(why))
end
