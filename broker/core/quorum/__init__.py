"""The quorum of controllers (KIP-595) and the metadata log that it keeps."""
