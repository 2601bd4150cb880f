"""What ``ppdp COMMAND`` does: one module for every command, imported only when it is run."""
