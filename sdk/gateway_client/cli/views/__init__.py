"""What people read of a call, a hold, an intent, a receipt."""
