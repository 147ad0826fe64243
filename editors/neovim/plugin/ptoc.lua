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
