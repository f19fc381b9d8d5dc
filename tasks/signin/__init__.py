"""Signing in: to sites with a form, to sites with OAuth 2, and keeping what they grant until it ends.

errors        what can go wrong
credentials   names, passwords and client secrets, by site
granted       cookies and tokens, and which request may carry which cookie (RFC 6265)
keep          the encrypted file they are kept in, shared by several processes
transport     connections: guarded, limited, or redirected to the lab
browser       pages, redirects and forms over one session
form          `user_login` through a form
oauth2        `user_login` for a bearer token
signins       who is signed in where: headers for the crawl, renewal ahead of expiry
"""
