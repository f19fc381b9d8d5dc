"""The lab: a whole local web of simulated sites on one loopback port, for demos, tests and measurements.

A request's ``Host`` header says which site is meant, its source address which crawl node asks.

    chance      the one source of chance: stable hashes of seed and names
    texts       what people write: real review texts where they are there, made ones elsewhere
    corpus      which pages there are, and what stands in them
    query       how a search URL is read back
    chrome      what surrounds the content of a page
    selectors, markup   elements made from the selectors that are to read them
    engines     result pages, a module a family of engines
    sites       pages of sites
    document    an answer as a whole
    web         the well-behaved web: host and path in, document out
    answers, roles      what a request may be answered; what a host is
    profile     how badly it behaves: profile files
    login       a login wall with a form
    oauth       an OAuth 2 server
    hashed_login  the sign-in of a site whose script hashes the password
    behaviour   what one request is answered
    log         the witness: one line a request
    refusals    answers that are no page
    server      the HTTP server
    running     the server in the foreground, or in a thread beside a test
"""
