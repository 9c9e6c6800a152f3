"""The vocabulary that rules and machines share: values, records, images, messages, events and effects."""
