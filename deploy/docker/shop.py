"""The app of the image: put yours in its place."""

from windlass import App

app = App()  # the address is in WINDLASS_STORE


@app.task
async def welcome(user_id: int) -> str:
    """An example of a job."""
    return f"mail sent to {user_id}"
