"""The lab: a local web of simulated sites on one loopback port, for demos, tests and measurements.

A request's ``Host`` header names the site, its source address the crawl node.

    chance      stable hashes of a seed and names, the only source of chance
    pages       addresses of pages, and what stands in them
    corpus      which pages each site has for a query, and the review texts in them
    query       reads a search URL back
    chrome      what surrounds the content of a page
    markup      elements made from the selectors that read them
    engines     result pages, by engine
    sites       pages of sites
    answers     answers other than pages: errors, captcha, login wall
    web         the web without faults: host and path in, document out
    profile     profile files: faults, limits, blocks, latencies by client and host
    login       a login wall with a form
    oauth       an OAuth 2 server
    behaviour   how a request is answered
    log         the request log
    server      the HTTP server
    running     the server in a thread, beside a command or a test
"""
