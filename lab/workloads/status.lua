-- GET of the status: the cost of a request without storage.
-- Arguments: none. Store: any.

wrk.path = "/v0/status"
