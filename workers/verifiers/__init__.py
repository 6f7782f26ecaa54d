"""Whether an effect happened, judged by what the host saw and never by what a provider says."""
