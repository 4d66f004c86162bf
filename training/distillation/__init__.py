"""What a student learns from teacher encoders, weak labels and lexical overlap."""
