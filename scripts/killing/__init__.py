"""What the long runs share that kill landings."""
