"""Real runs whose verdicts are known beforehand: they test the judge as much as the broker."""
