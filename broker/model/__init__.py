"""What rules and machines both speak: values, records, images, messages, events and effects."""
