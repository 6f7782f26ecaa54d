"""The process `gateway edge`: TLS for agents on other hosts, in front of the client socket."""
