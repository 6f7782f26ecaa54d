module action-gateway/verify

go 1.21
