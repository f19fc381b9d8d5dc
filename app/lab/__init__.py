"""The lab: a local web of simulated sites on one loopback port, for demos, tests and measurements.

The ``Host`` header of a request selects the site. The source address of a request stands for the crawl node.

    chance           random numbers from a hash of seed and names
    pages            pages of each site for a query, their addresses and texts
    chrome           surroundings of a page's content
    made             HTML and JSON generated from the rules that will read it
    engines          search URLs and result pages
    sites            pages of sites, lists, sitemaps
    answers          kinds of answers, and notices such as errors and captchas
    web              the web without faults: takes host and path, returns a response
    profile          profile files: faults, limits, blocks, latencies by client and host
    faults           how a request is answered
    sign_in          a login wall with a form
    hashed_password  the client side of a form that hashes the password
    log              the request log
    server           the HTTP server
    running          the server in a thread
"""
