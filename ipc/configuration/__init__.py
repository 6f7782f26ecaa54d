"""Parts of the settings, as the processes of a gateway hand them on."""
