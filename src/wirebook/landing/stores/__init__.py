"""Where sources and targets are: folders of this machine, and object stores."""
