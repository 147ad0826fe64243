-- Drives the real server from Neovim: `PTOC=path/to/ptoc nvim --headless -u editors/neovim/test/run.lua`.
-- Opens a kernel with a mistake, sees its diagnostic, mends it, sees it go, then asks for hover, rename and formatting.

local here = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h")
local text = {
  "kernel scale(x: in f32[M, N], y: out f32[M, N]) {",
  "    grid (i in tiles(M, 16), j in tiles(N, 64));",
  "    let t = tile Vec<f32, i, j>;",
  "    TLOAD(t, x.tile(i, j));",
  "    TMULZ(t, t, 2.0);",
  "      TSTORE(y.tile(i, j), t);",
  "}",
}

local function fail(why)
  io.stderr:write("failed: " .. why .. "\n")
  vim.cmd("cquit 1")
end

local function until_true(what, seconds, test)
  if not vim.wait(seconds * 1000, test, 20) then
    fail(what .. ": nothing after " .. seconds .. " s; diagnostics: " .. vim.inspect(vim.diagnostic.get(0)))
  end
  print("ok: " .. what .. "\n")
end

-- One answer of the one server.
local function ask(method, params)
  local answers = vim.lsp.buf_request_sync(0, method, params, 10000)
  for _, answer in pairs(answers or {}) do
    if answer.err then
      fail(method .. ": " .. vim.inspect(answer.err))
    end
    return answer.result
  end
  fail(method .. ": no answer")
end

local function main()
  vim.g.ptoc = { cmd = { os.getenv("PTOC") or "ptoc", "lsp" } }
  vim.cmd("source " .. here .. "/../plugin/ptoc.lua")
  local folder = vim.fn.tempname()
  vim.fn.mkdir(folder, "p")
  vim.fn.writefile(text, folder .. "/scale.tile")
  vim.cmd("edit " .. folder .. "/scale.tile")

  until_true("the mistake is shown", 20, function()
    local found = vim.diagnostic.get(0)
    return #found == 1 and found[1].lnum == 4 and found[1].message:find("TMULZ", 1, true) ~= nil
  end)

  vim.api.nvim_buf_set_lines(0, 4, 5, false, { "    TMULS(t, t, 2.0);" })
  until_true("it goes with the mistake", 20, function() return #vim.diagnostic.get(0) == 0 end)

  vim.api.nvim_win_set_cursor(0, { 5, 5 })
  local hover = ask("textDocument/hover", vim.lsp.util.make_position_params())
  if not vim.inspect(hover):find("TMULS", 1, true) then
    fail("hover says nothing of TMULS: " .. vim.inspect(hover))
  end
  print("ok: hover\n")

  vim.api.nvim_win_set_cursor(0, { 3, 8 })
  local rename = vim.tbl_extend("force", vim.lsp.util.make_position_params(), { newName = "scaled" })
  vim.lsp.util.apply_workspace_edit(ask("textDocument/rename", rename), "utf-16")
  local renamed = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")
  if select(2, renamed:gsub("scaled", "")) ~= 5 or renamed:find("[( ]t[,)]") then
    fail("rename gave:\n" .. renamed)
  end
  print("ok: rename\n")

  local edits = ask("textDocument/formatting", vim.lsp.util.make_formatting_params({}))
  vim.lsp.util.apply_text_edits(edits, 0, "utf-16")
  if vim.api.nvim_buf_get_lines(0, 5, 6, false)[1] ~= "    TSTORE(y.tile(i, j), scaled);" then
    fail("formatting gave: " .. vim.inspect(vim.api.nvim_buf_get_lines(0, 0, -1, false)))
  end
  print("ok: formatting\n")
  until_true("no diagnostics at the end", 20, function() return #vim.diagnostic.get(0) == 0 end)
  vim.cmd("qall!")
end

local ok, why = pcall(main)
if not ok then
  fail(tostring(why))
end
