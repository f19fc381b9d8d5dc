"""Signing in: to sites with a form, to sites with OAuth 2, and keeping what they grant until it ends.

errors        what can go wrong
credentials   names, passwords and client secrets, by site
granted       cookies and tokens, which request may carry which cookie (RFC 6265), and the encrypted file of them
browser       pages, redirects and forms over one guarded session
methods       `user_login`: the interface, through a form, by a browser's cookies
oauth2        `user_login` for a bearer token
signins       who is signed in where: headers for the crawl, renewal ahead of expiry
"""
