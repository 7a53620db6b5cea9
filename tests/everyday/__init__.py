"""What people try first: tasks as a newcomer would type them, and mistakes with the cure that the message names."""
