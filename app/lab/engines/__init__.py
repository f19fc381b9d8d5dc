"""Result pages as search engines write them: one module a family of formats."""
