"""HTTP and TLS of the processes beside a gateway, by hypercorn on trio; fronts have frontend/http."""
