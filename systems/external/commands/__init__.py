"""What is done to brokers that are not ours: commands of the user's."""
