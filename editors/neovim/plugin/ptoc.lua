-- Neovim and `.tile` files: the language server, colours from the tree-sitter grammar, and commands for what only
-- ptoc shows. Settings: `vim.g.ptoc = { cmd = { "ptoc", "lsp" }, settings = { target = "a5" } }` before this is loaded.

if vim.g.loaded_ptoc then
  return
end
vim.g.loaded_ptoc = true

local options = vim.g.ptoc or {}
local config = {
  name = "ptoc",
  cmd = options.cmd or { "ptoc", "lsp" },
  filetypes = { "tile" },
  root_markers = { ".git" },
  init_options = options.settings or vim.empty_dict(),
}

local function root(buffer)
  local folder = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(buffer), ":p:h")
  local git = vim.fn.finddir(".git", folder .. ";")
  return git ~= "" and vim.fn.fnamemodify(git, ":p:h:h") or folder
end

-- Before 0.8 a client is started by hand and shared by the texts of one folder.
local clients = {}
local function start(buffer)
  local folder = root(buffer)
  if vim.lsp.start then
    vim.lsp.start(vim.tbl_extend("force", config, { root_dir = folder }), { bufnr = buffer })
  else
    clients[folder] = clients[folder] or vim.lsp.start_client(vim.tbl_extend("force", config, { root_dir = folder }))
    vim.lsp.buf_attach_client(buffer, clients[folder])
  end
end

local group = vim.api.nvim_create_augroup("ptoc", {})
vim.api.nvim_create_autocmd({ "BufRead", "BufNewFile" }, {
  group = group,
  pattern = "*.tile",
  callback = function() vim.bo.filetype = "tile" end,
})
vim.api.nvim_create_autocmd("FileType", {
  group = group,
  pattern = "tile",
  callback = function(event)
    local buffer = event.buf or vim.api.nvim_get_current_buf()
    vim.bo[buffer].commentstring = "// %s"
    vim.bo[buffer].expandtab = true
    vim.bo[buffer].shiftwidth = 4
    -- Without the parser (see the README) there is text without colours, and no error.
    if vim.treesitter.start then
      pcall(vim.treesitter.start, buffer, "tile")
    end
    if not vim.lsp.config then
      start(buffer)
    end
  end,
})

-- From 0.11 on Neovim starts it.
if vim.lsp.config then
  config.name = nil
  vim.lsp.config("ptoc", config)
  vim.lsp.enable("ptoc")
end

-- Code lenses: `vim.lsp.codelens.refresh()` shows them, `vim.lsp.codelens.run()` does what the one on the line says.

local program = config.cmd[1]

-- Asks the server that has sent a lens, or any of this buffer.
local function ask(method, params, answered)
  vim.lsp.buf_request(0, method, params, function(err, result)
    if err then
      vim.notify(err.message, vim.log.levels.ERROR)
    elseif result then
      answered(result)
    end
  end)
end

local function split(text, name)
  vim.cmd("botright vnew")
  vim.bo.buftype, vim.bo.bufhidden, vim.bo.swapfile = "nofile", "wipe", false
  pcall(vim.api.nvim_buf_set_name, 0, name)
  vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.split(text, "\n"))
  vim.bo.modifiable = false
end

-- A page opens in what opens pages on this machine.
local function browse(page)
  local path = vim.fn.tempname() .. ".html"
  vim.fn.writefile(vim.split(page.html, "\n"), path)
  if vim.ui.open then
    vim.ui.open(path)
  else
    vim.notify("the page is " .. path)
  end
end

-- The place of a lens, or where the cursor is.
local function place(given)
  if given and given.textDocument then
    return given
  end
  return vim.lsp.util.make_position_params(0, "utf-16")
end

local function run(at, kernel)
  local file = vim.uri_to_fname(at.textDocument.uri)
  local words = { program, "run", file, kernel }
  if (options.settings or {}).target then
    vim.list_extend(words, { "--target", options.settings.target })
  end
  for _, definition in ipairs((options.settings or {}).define or {}) do
    vim.list_extend(words, { "-D", definition })
  end
  vim.cmd("botright split | enew")
  vim.fn.termopen(words)
end

-- nvim-dap, if it is there: https://github.com/mfussenegger/nvim-dap
local function debug(_, kernel)
  local ok, dap = pcall(require, "dap")
  if not ok then
    vim.notify("debugging needs the plugin nvim-dap", vim.log.levels.WARN)
    return
  end
  local sizes = vim.fn.input("Sizes and constants (M=64 N=64): ")
  dap.run({
    type = "ptoc", request = "launch", name = "Debug " .. kernel, program = vim.api.nvim_buf_get_name(0), kernel = kernel,
    target = (options.settings or {}).target, define = vim.split(sizes, "%s+", { trimempty = true }), random = 1, stopOnEntry = true,
  })
end

local actions = {
  ["ptoc.run"] = run,
  ["ptoc.debug"] = debug,
  ["ptoc.showMemoryMap"] = function(at) ask("ptoc/memoryMap", place(at), browse) end,
  ["ptoc.showLayout"] = function(at) ask("ptoc/layout", place(at), browse) end,
  ["ptoc.showPim"] = function(at) ask("ptoc/pim", place(at), function(found) split(found.text, found.title) end) end,
  ["ptoc.showIr"] = function(at, stage)
    local params = vim.tbl_extend("force", place(at), { stage = stage or "placed" })
    ask("ptoc/ir", params, function(found) split(found.text, found.title) end)
  end,
}
if vim.lsp.commands then
  for name, action in pairs(actions) do
    vim.lsp.commands[name] = function(command) action(unpack(command.arguments or {})) end
  end
end
vim.api.nvim_create_user_command("PtocMap", function() actions["ptoc.showMemoryMap"]() end, {})
vim.api.nvim_create_user_command("PtocIr", function(call) actions["ptoc.showIr"](nil, call.args ~= "" and call.args or nil) end, { nargs = "?" })

-- The debugger. Without nvim-dap there is nothing to configure.
local found, dap = pcall(require, "dap")
if found then
  dap.adapters.ptoc = { type = "executable", command = program, args = { "dap" } }
  dap.configurations.tile = {
    {
      type = "ptoc", request = "launch", name = "Debug a kernel of this file", program = "${file}", random = 1, stopOnEntry = true,
      define = function()
        return coroutine.create(function(waiting)
          vim.ui.input({ prompt = "Sizes and constants (M=64 N=64): " }, function(text)
            coroutine.resume(waiting, vim.split(text or "", "%s+", { trimempty = true }))
          end)
        end)
      end,
    },
  }
end
