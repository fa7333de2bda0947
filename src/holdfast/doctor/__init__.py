"""What is wrong with a data pipeline, before it starts and while it runs. Facts only: ``cli`` renders them."""
