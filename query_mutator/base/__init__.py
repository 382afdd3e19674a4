"""What every room uses: errors, files, flags, the terminal, untrusted text."""
